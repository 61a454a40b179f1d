//! Columns of text that fit a terminal of 80, or are whole where there is none.

use unicode_width::UnicodeWidthStr as _;

/// Width of a terminal.
pub(crate) const WIDTH: usize = 80;

/// Lays rows out in columns; the last one is cut to what is left of `width`, if there is one. `paint` may colour a
/// padded cell, given its row and column.
pub(crate) fn render(
    head: &[&str],
    rows: &[Vec<String>],
    width: Option<usize>,
    paint: impl Fn(usize, usize, String) -> String,
) -> Vec<String> {
    let columns = head.len();
    let mut widths: Vec<usize> = head.iter().map(|h| h.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    // The last column takes what is left, at least ten, so that a long name cannot hide it.
    let before: usize = widths.iter().take(columns.saturating_sub(1)).map(|w| w + 2).sum();
    let last = width.map_or(usize::MAX, |width| width.saturating_sub(before).max(10));
    let line = |cells: &[String], row: Option<usize>| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let is_last = column + 1 == columns;
            let fitted = if is_last { cut(cell, last) } else { cell.clone() };
            let padding = if is_last { 0 } else { widths[column].saturating_sub(fitted.width()) };
            let painted = row.map_or_else(|| fitted.clone(), |row| paint(row, column, fitted.clone()));
            text.push_str(&painted);
            text.push_str(&" ".repeat(padding + if is_last { 0 } else { 2 }));
        }
        text.trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    std::iter::once(line(&head, None))
        .chain(rows.iter().enumerate().map(|(n, row)| line(row, Some(n))))
        .collect()
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if kept.width() + 1 >= width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// How long ago, in one unit: `45s`, `12m`, `3h`, `9d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_eighty_and_columns_line_up() {
        let rows = vec![
            vec!["rack1".to_owned(), "Ready".to_owned(), String::new()],
            vec!["a-longer-name".to_owned(), "Error".to_owned(), "why ".repeat(40)],
        ];
        let head = ["NAME", "STATE", "MESSAGE"];
        let whole = render(&head, &rows, None, |_, _, cell| cell);
        assert!(whole[2].ends_with("why why"), "a file or a pipe gets everything: {whole:?}");
        let lines = render(&head, &rows, Some(WIDTH), |_, _, cell| cell);
        assert!(lines.iter().all(|l| l.width() <= WIDTH), "{lines:?}");
        assert!(lines[2].ends_with('…'));
        assert_eq!(lines[0].find("STATE"), lines[2].find("Error"));
        assert_eq!(lines[1], "rack1          Ready");
    }

    #[test]
    fn ages_have_one_unit() {
        let table = [(5, "5s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")];
        for (seconds, shown) in table {
            assert_eq!(age(seconds), shown);
        }
    }
}

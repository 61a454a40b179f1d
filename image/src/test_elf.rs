//! Small ELF files for tests, built from parts so that no binary fixture is kept.

/// Parts of an x86-64 ELF file.
#[derive(Debug, Default, Clone)]
pub(crate) struct ElfFixture {
    interpreter: Option<String>,
    dynamic: Option<Vec<u64>>,
    sections: Vec<(String, Vec<u8>)>,
}

impl ElfFixture {
    pub(crate) fn interpreter(mut self, path: &str) -> Self {
        self.interpreter = Some(path.to_owned());
        self
    }

    /// A dynamic segment with these tags.
    pub(crate) fn dynamic(mut self, tags: &[u64]) -> Self {
        self.dynamic = Some(tags.to_vec());
        self
    }

    pub(crate) fn section(mut self, name: &str, bytes: &[u8]) -> Self {
        self.sections.push((name.to_owned(), bytes.to_vec()));
        self
    }

    /// A kernel module whose `.modinfo` holds these `key=value` strings.
    pub(crate) fn module(entries: &[&str]) -> Vec<u8> {
        let modinfo: Vec<u8> = entries.iter().flat_map(|entry| [entry.as_bytes(), b"\0"].concat()).collect();
        ElfFixture::default().section(".text", b"code").section(".modinfo", &modinfo).build()
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut segments: Vec<(u32, Vec<u8>)> = Vec::new();
        if let Some(path) = &self.interpreter {
            segments.push((3, [path.as_bytes(), b"\0"].concat()));
        }
        if let Some(tags) = &self.dynamic {
            segments.push((2, tags.iter().flat_map(|tag| [tag.to_le_bytes(), [0; 8]].concat()).collect()));
        }
        let mut out = vec![0_u8; 64 + 56 * segments.len()];
        out[..6].copy_from_slice(b"\x7fELF\x02\x01");
        out[16] = 2;
        out[18] = 62;
        out[32] = 64;
        out[56] = u8::try_from(segments.len()).expect("few segments");
        for (index, (kind, bytes)) in segments.iter().enumerate() {
            let header = 64 + 56 * index;
            let offset = out.len() as u64;
            out[header..header + 4].copy_from_slice(&kind.to_le_bytes());
            out[header + 8..header + 16].copy_from_slice(&offset.to_le_bytes());
            out[header + 32..header + 40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        if !self.sections.is_empty() {
            self.append_sections(&mut out);
        }
        out
    }

    fn append_sections(&self, out: &mut Vec<u8>) {
        let mut names = vec![0_u8];
        let mut headers = vec![0_u8; 64];
        let mut add = |name: &str, bytes: &[u8], names: &mut Vec<u8>, out: &mut Vec<u8>| {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&u32::try_from(names.len()).expect("short names").to_le_bytes());
            header[4] = 1;
            header[24..32].copy_from_slice(&(out.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            out.extend_from_slice(bytes);
            headers.extend_from_slice(&header);
        };
        for (name, bytes) in &self.sections {
            add(name, bytes, &mut names, out);
        }
        let complete = [names.as_slice(), b".shstrtab\0"].concat();
        add(".shstrtab", &complete, &mut names, out);
        let count = u8::try_from(self.sections.len() + 2).expect("few sections");
        let offset = (out.len() as u64).to_le_bytes();
        out.extend_from_slice(&headers);
        out[40..48].copy_from_slice(&offset);
        out[60] = count;
        out[62] = count - 1;
    }
}

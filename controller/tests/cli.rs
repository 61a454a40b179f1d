//! The real `farrier` binary against a real controller: what it refuses, what it says, how it exits.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its own stage must fail")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_farrier");

const OBJECTS: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: bmc
stringData:
  username: admin
  password: hunter2
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: PhysicalHost
metadata:
  name: rack1-u7
spec:
  redfishConnection:
    address: https://192.0.2.9
    credentialsSecretRef: bmc
";

/// A running controller in a scratch directory, killed at the end.
struct Controller {
    dir: tempfile::TempDir,
    process: Child,
}

impl Controller {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        Self::logging_to(log, dir)
    }

    fn logging_to(log: std::fs::File, dir: tempfile::TempDir) -> Self {
        let process = Command::new(BINARY)
            .args(["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            .args(["--url-base", "https://127.0.0.1:8082", "--data-dir"])
            .arg(dir.path().join("data"))
            .env("FARRIER_LOG", "trace")
            .stderr(log)
            .spawn()
            .unwrap();
        let controller = Self { dir, process };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !controller.socket().exists() {
            assert!(Instant::now() < deadline, "the controller did not start: {}", controller.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        controller
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("data/admin.sock")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        farrier(&self.socket(), args, input)
    }

    fn hosts(&self) -> String {
        text(&self.run(&["get", "hosts", "--output", "json"], "").stdout)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn farrier(socket: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(BINARY)
        .args(args)
        .env("FARRIER_ADMIN_SOCKET", socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn fails(output: &Output, code: i32, named: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(named), "{named:?} is not in {stderr:?}");
}

#[test]
fn the_help_of_serve_is_about_serving() {
    let help = |args: &[&str]| text(&farrier(Path::new("/nowhere"), args, "").stdout);
    let (serve, get) = (help(&["serve", "--help"]), help(&["get", "--help"]));
    for flag in ["--admin-url", "--admin-token-file", "--namespace"] {
        assert!(!serve.contains(flag) && get.contains(flag), "{flag}");
    }
    assert!(serve.contains("--admin-socket") && serve.contains("--data-dir"));
}

#[test]
fn help_has_examples_and_fits_a_terminal() {
    let commands = ["apply", "get", "describe", "delete", "release", "provision", "adopt", "watch"];
    for command in commands {
        let help = text(&farrier(Path::new("/nowhere"), &[command, "--help"], "").stdout);
        assert!(help.contains("Examples:\n  farrier ") && help.contains("--output"), "{command}: {help}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
    let help = text(&farrier(Path::new("/nowhere"), &["--help"], "").stdout);
    assert!(help.contains("Examples:") && help.lines().all(|line| line.chars().count() <= 80), "{help}");
}

#[test]
fn every_command_can_be_read_by_programs() {
    let controller = Controller::start();
    let lines = |args: &[&str], input: &str| -> Vec<serde_json::Value> {
        let output = controller.run(args, input);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let applied = lines(&["apply", "-f", "-", "--output", "json"], OBJECTS);
    let expected = |kind, name, result| serde_json::json!({ "kind": kind, "namespace": "default", "name": name, "result": result });
    assert_eq!(applied, [expected("secret", "bmc", "created"), expected("host", "rack1-u7", "created")]);
    let described = controller.run(&["describe", "host", "rack1-u7", "-o", "json"], "");
    let described: serde_json::Value = serde_json::from_slice(&described.stdout).unwrap();
    assert_eq!(described["host"]["metadata"]["name"], "rack1-u7");
    assert!(
        described["history"].is_array() && described["machine"].is_null() && described["progress"].is_null()
    );
    let yaml = text(&controller.run(&["describe", "host", "rack1-u7", "-o", "yaml"], "").stdout);
    assert!(yaml.contains("history:") && !yaml.contains("hunter2"), "{yaml}");
    assert_eq!(
        lines(&["delete", "host", "rack1-u7", "-o", "json"], ""),
        [expected("host", "rack1-u7", "deleted")]
    );
}

#[test]
fn files_with_faults_are_refused_by_line_and_field_and_nothing_is_stored() {
    let controller = Controller::start();
    let table = [
        (
            OBJECTS.replace("    address:", "    adress:"),
            "standard input:15:5: spec.redfishConnection.adress: unknown field `adress`",
        ),
        (OBJECTS.replace("https://192.0.2.9", "ftp://192.0.2.9"), "standard input:15:14"),
        (OBJECTS.replace("https://192.0.2.9", "https://u:p@192.0.2.9"), "spec.redfishConnection.address"),
        (OBJECTS.replace("PhysicalHost", "Host"), "standard input:9: kind"),
        (OBJECTS.replace("rack1-u7", "Rack1"), "Rack1"),
        (OBJECTS.replace("stringData", "data"), "the value is withheld"),
        (format!("{OBJECTS}---\n{OBJECTS}"), "already defined at standard input:1"),
        ("# nothing\n".to_owned(), "no object"),
        ("a: [".to_owned(), "standard input:1"),
    ];
    for (yaml, named) in table {
        let output = controller.run(&["apply", "-f", "-"], &yaml);
        fails(&output, 2, named);
        assert!(!text(&output.stderr).contains("hunter2"));
        assert!(controller.hosts().contains("\"items\": []"), "{named}");
    }
    fails(&controller.run(&["apply", "-f", "/nonexistent"], ""), 2, "/nonexistent");
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let controller = Controller::start();
    let digest = format!("sha256:{}", "0".repeat(64));
    let provision = |host, image, digest| {
        let args = ["provision", host, "--image", image, "--digest", digest, "--user-data", "-"];
        controller.run(&args, "#cloud-config\n")
    };
    assert_eq!(controller.run(&["apply", "-f", "-"], OBJECTS).status.code(), Some(0));
    fails(&provision("rack1-u7", "http://x/os.img", "sha256:12"), 2, "--digest");
    fails(&provision("rack1-u7", "file:///os.img", &digest), 2, "--image");
    fails(&provision("Rack1", "http://x/os.img", &digest), 2, "HOST");
    fails(&provision("none", "http://x/os.img", &digest), 4, "none");
    // Not Available yet or no longer: its BMC is nobody's.
    fails(&provision("rack1-u7", "http://x/os.img", &digest), 1, "not Available");
    let no_digest = ["provision", "rack1-u7", "--image", "http://x/os.img", "--user-data", "-"];
    fails(&controller.run(&no_digest, "x"), 2, "--digest");
    let machines = text(&controller.run(&["get", "machines", "--output", "json"], "").stdout);
    let secrets = text(&controller.run(&["get", "secrets", "--output", "json"], "").stdout);
    assert!(machines.contains("\"items\": []") && !secrets.contains("user-data"), "{machines} {secrets}");

    fails(&controller.run(&["get", "host", "none"], ""), 4, "none");
    fails(&controller.run(&["describe", "host", "none"], ""), 4, "none");
    fails(&controller.run(&["delete", "machine", "none"], ""), 4, "none");
    fails(&controller.run(&["watch", "none"], ""), 4, "none");
    fails(&controller.run(&["release", "rack1-u7"], ""), 1, "not claimed");
    fails(&controller.run(&["watch", "rack1-u7", "--until", "Deploying", "--timeout", "1s"], ""), 1, "");
    fails(&controller.run(&["get", "things"], ""), 2, "things");
    let adopt =
        |host, digest| controller.run(&["adopt", host, "--image", "http://x/os.img", "--digest", digest], "");
    fails(&adopt("none", &digest), 4, "none");
    fails(&adopt("rack1-u7", "sha256:12"), 2, "--digest");
    fails(&farrier("/nonexistent/admin.sock".as_ref(), &["get", "hosts"], ""), 3, "/nonexistent/admin.sock");
    for help in [&["--help"][..], &["provision", "--help"], &["adopt", "--help"], &["watch", "--help"]] {
        let output = controller.run(help, "");
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Examples:"), "{help:?}");
    }
}

#[test]
fn a_host_in_use_is_deleted_only_by_force() {
    let controller = Controller::start();
    // Paused, it stays as it is whatever its BMC says.
    let paused = "  name: rack1-u7\n  annotations: {cluster.x-k8s.io/paused: \"\"}\n";
    let objects = OBJECTS.replace("  name: rack1-u7\n", paused);
    assert_eq!(controller.run(&["apply", "-f", "-"], &objects).status.code(), Some(0));
    let digest = format!("sha256:{}", "0".repeat(64));
    let image = ["--image", "http://x/os.img", "--digest", &digest];
    let adopt = [&["adopt", "rack1-u7", "--machine", "web-1"], &image[..]].concat();
    let adopted = controller.run(&adopt, "");
    assert_eq!(adopted.status.code(), Some(0), "{}", text(&adopted.stderr));
    fails(&controller.run(&["delete", "host", "rack1-u7"], ""), 1, "in use by machine web-1");
    assert!(controller.hosts().contains("rack1-u7"));
    assert_eq!(controller.run(&["delete", "host", "rack1-u7", "--force"], "").status.code(), Some(0));
    assert!(!controller.hosts().contains("rack1-u7"));
}

#[test]
fn agent_options_that_would_not_be_honoured_are_refused_by_name_and_nothing_is_stored() {
    let controller = Controller::start();
    let host = |options: &str| {
        let spec = "    credentialsSecretRef: bmc\n";
        OBJECTS.replace(spec, &format!("{spec}  agentOptions: {options}\n"))
    };
    for (options, field, accepted) in [
        ("{mtu: 100}", "spec.agentOptions.mtu", "576 to 9216"),
        ("{vlan: eth0}", "spec.agentOptions.vlan", "1 to 4094"),
        ("{vlna: 1}", "spec.agentOptions.vlna", "on-failure, vlan"),
        ("{verify: off}", "spec.agentOptions.verify", "of the Beskar7Machine"),
        ("{vlan: [1]}", "spec.agentOptions.vlan", "text or a whole number"),
    ] {
        let output = controller.run(&["apply", "-f", "-"], &host(options));
        fails(&output, 2, field);
        fails(&output, 2, accepted);
        assert!(controller.hosts().contains("\"items\": []"), "{options}");
    }
    let taken = controller.run(&["apply", "-f", "-"], &host("{vlan: 100, on-failure: reboot, ip6: off}"));
    assert_eq!(taken.status.code(), Some(0), "{}", text(&taken.stderr));
    let shown = text(&controller.run(&["get", "host", "rack1-u7", "--output", "json"], "").stdout);
    for kept in ["\"vlan\": \"100\"", "\"on-failure\": \"reboot\"", "\"ip6\": \"off\""] {
        assert!(shown.contains(kept), "{shown}");
    }

    let digest = format!("sha256:{}", "0".repeat(64));
    let provision = |options: &[&str]| {
        let mut args = vec!["provision", "rack1-u7", "--image", "http://x/os.img", "--digest", &digest];
        args.extend(["--user-data", "-"]);
        args.extend(options.iter().flat_map(|option| ["--option", option]));
        controller.run(&args, "#cloud-config\n")
    };
    fails(&provision(&["verify=maybe"]), 2, "auto, readback or off");
    fails(&provision(&["mtu=9000"]), 2, "of the PhysicalHost");
    fails(&provision(&["verify"]), 2, "KEY=VALUE");
    fails(&provision(&["verify=off", "verify=auto"]), 2, "verify is given twice");
    // Valid so far, and then it is the host's turn to be refused.
    fails(&provision(&["verify=readback", "on-failure=reboot"]), 1, "not Available");
    let help = text(&controller.run(&["provision", "--help"], "").stdout);
    assert!(help.contains("--option verify=readback") && help.contains("auto, readback or off"), "{help}");
}

#[test]
fn output_is_plain_where_nobody_looks_and_secrets_stay_inside() {
    let controller = Controller::start();
    let applied = controller.run(&["apply", "-f", "-"], OBJECTS);
    assert_eq!(text(&applied.stdout), "secret/bmc created\nhost/rack1-u7 created\n");
    let again = controller.run(&["apply", "-f", "-"], OBJECTS);
    assert_eq!(text(&again.stdout), "secret/bmc configured\nhost/rack1-u7 configured\n");
    let mut shown = String::new();
    for args in [
        &["get", "hosts"][..],
        &["get", "secrets"],
        &["get", "secrets", "--output", "yaml"],
        &["get", "secret", "bmc", "--output", "json"],
        &["describe", "host", "rack1-u7"],
    ] {
        let output = controller.run(args, "");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let text = text(&output.stdout);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        shown.push_str(&text);
    }
    assert!(shown.contains("password") && shown.contains("rack1-u7"));
    assert!(!shown.contains("hunter2") && !controller.log().contains("hunter2"));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", controller.process.id())).unwrap();
    let core: Vec<&str> = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max core file size"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(core[..2], ["0", "0"], "a crash must leave no secrets behind");
}

#[test]
fn s051_a_second_controller_on_the_same_directory_does_not_start() {
    let controller = Controller::start();
    let data = controller.dir.path().join("data");
    let output = Command::new(BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
        .args(["--url-base", "https://127.0.0.1:8082", "--data-dir"])
        .arg(&data)
        .output()
        .unwrap();
    fails(&output, 1, "another farrier controller");
    // The first one is none the worse for it.
    assert!(controller.hosts().contains("items"));
}

#[test]
fn a_log_that_cannot_be_written_stops_neither_the_controller_nor_a_command() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("log"), "").unwrap();
    let mut controller = Controller::logging_to(full(), dir);
    let applied = controller.run(&["apply", "-f", "-"], OBJECTS);
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied.stderr));
    assert!(controller.hosts().contains("rack1-u7"));
    assert!(controller.process.try_wait().unwrap().is_none(), "it goes on");

    let untold = |args: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(args).env("FARRIER_ADMIN_SOCKET", controller.socket()).stderr(full());
        command.output().unwrap().status.code()
    };
    assert_eq!(untold(&["get", "host", "none"]), Some(4));
    assert_eq!(untold(&["get", "machines"]), Some(0));
}

#[test]
fn an_object_too_large_for_the_controller_is_called_so() {
    let controller = Controller::start();
    let text = format!(
        "kind: Secret\napiVersion: v1\nmetadata: {{name: s}}\nstringData: {{a: \"{}\"}}\n",
        "x".repeat(3 << 20)
    );
    fails(&controller.run(&["apply", "-f", "-"], &text), 2, "larger than 2097152 bytes");
}

#[test]
fn what_answers_like_no_controller_is_not_taken_for_an_absent_object() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut socket, &mut [0; 4096]).unwrap();
        socket.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot found").unwrap();
    });
    let output = farrier(Path::new("/nowhere"), &["get", "hosts", "--admin-url", &url], "");
    fails(&output, 3, "no farrier admin API");
    server.join().unwrap();
}

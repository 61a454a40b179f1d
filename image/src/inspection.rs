//! The build of one inspection image, from top to bottom.

use crate::agent_build::{self, AgentBuildError, StaticAgent};
use crate::debian::Packages;
use crate::firmware;
use crate::initramfs::{Initramfs, InitramfsError};
use crate::kernel::{Kernel, KernelError, KernelSource};
use crate::manifest::{FileRecord, FirmwareRecord, Manifest};
use crate::modules::{
    KernelTree, ListError, ModuleList, Profile, ResolveError, Selection, TreeError, index, resolve, strip,
    tree,
};
use crate::progress::Progress;
use std::path::{Path, PathBuf};

/// Where the agent comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSource {
    /// Built from this workspace.
    Build(agent_build::Request),
    /// A static program given as PID 1.
    File(PathBuf),
}

/// What to build, and where.
#[derive(Debug, Clone)]
pub struct Request {
    /// Directory for vmlinuz, initrd.img and manifest.json.
    pub out: PathBuf,
    /// Directory for downloaded and unpacked packages.
    pub cache: PathBuf,
    /// Which machines it is for.
    pub profile: Profile,
    /// A module list instead of the profile's.
    pub modules: Option<PathBuf>,
    /// The agent.
    pub agent: AgentSource,
    /// The kernel.
    pub kernel: KernelSource,
    /// Directories with firmware files, searched before firmware packages.
    pub firmware: Vec<PathBuf>,
    /// Date of every file in the initramfs, in seconds since 1970; the agent's is its own request's.
    pub source_date_epoch: u32,
}

/// Why a build ended.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No static agent.
    #[error("agent: {0}")]
    Agent(#[from] AgentBuildError),
    /// No kernel.
    #[error("kernel: {0}")]
    Kernel(#[from] KernelError),
    /// A module list is malformed.
    #[error("modules: {0}")]
    List(#[from] ListError),
    /// A module cannot be read.
    #[error("modules: {0}")]
    Tree(#[from] TreeError),
    /// Lists and kernel do not fit.
    #[error("modules: {0}")]
    Resolve(#[from] ResolveError),
    /// The archive cannot be made.
    #[error("initramfs: {0}")]
    Initramfs(#[from] InitramfsError),
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// read or write.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Builds the image and writes its three files.
///
/// # Errors
/// At the first step that fails; the output directory then holds the files of the build before, or none.
pub fn build(request: &Request, progress: &Progress) -> Result<Manifest, BuildError> {
    let packages = Packages::new(&request.cache);

    let agent = agent(&request.agent, &packages, progress)?;

    progress.step("kernel: looking for it");
    let kernel = request.kernel.obtain(&packages)?;
    let vmlinuz = read(&kernel.vmlinuz)?;

    progress.step(&format!("modules: reading those of kernel {}", kernel.release));
    let tree = KernelTree::scan(&kernel.modules)?;
    let list = match &request.modules {
        Some(path) => ModuleList::read(path)?,
        None => request.profile.list()?,
    };
    let selection = resolve::resolve(&tree, &list)?;
    progress.step(&format!("modules: {} of {} selected", selection.modules.len(), tree.modules.len()));

    let (firmware, packages_missing) =
        find_firmware(request, &kernel, &tree, &selection, &packages, progress);

    let mut image = Initramfs::default();
    add_agent(&mut image, &agent)?;
    add_modules(&mut image, &tree, &selection)?;
    for (name, path) in &firmware.files {
        image.file(&format!("lib/firmware/{name}"), 0o644, read(path)?)?;
    }
    progress.step(&format!("initramfs: compressing {} entries", image.len()));
    let initrd = image
        .write_compressed(Vec::new(), request.source_date_epoch)
        .map_err(|source| InitramfsError::Write { path: request.out.join("initrd.img"), source })?;

    let manifest = Manifest {
        profile: request.profile,
        kernel_version: kernel.release,
        agent: agent.record(),
        total_bytes: FileRecord::of(&vmlinuz).bytes + FileRecord::of(&initrd).bytes,
        vmlinuz: FileRecord::of(&vmlinuz),
        initrd: FileRecord::of(&initrd),
        goal_bytes: request.profile.size_goal(),
        module_count: selection.modules.len(),
        modules_loaded: selection.load.clone(),
        modules_absent: selection.absent.clone(),
        unmet_softdeps: selection.unmet_wishes,
        firmware: FirmwareRecord { files: firmware.files.len(), packages_missing, missing: firmware.missing },
        source_date_epoch: request.source_date_epoch,
    };
    progress.step(&format!("writing {}", request.out.display()));
    publish(&request.out, &vmlinuz, &initrd, &manifest)?;
    Ok(manifest)
}

fn agent(source: &AgentSource, packages: &Packages, progress: &Progress) -> Result<StaticAgent, BuildError> {
    match source {
        AgentSource::Build(request) => Ok(agent_build::build(request, packages, progress)?),
        AgentSource::File(path) => {
            progress.step(&format!("agent: taking {}", path.display()));
            Ok(StaticAgent::from_file(path, None, format!("given as {}", path.display()))?)
        }
    }
}

/// Only for profile `full`: no emulated device asks for firmware. Directories given are searched anyway.
fn find_firmware(
    request: &Request,
    kernel: &Kernel,
    tree: &KernelTree,
    selection: &Selection,
    packages: &Packages,
    progress: &Progress,
) -> (firmware::Firmware, Vec<String>) {
    let wanted = firmware::declared(tree, selection);
    let mut directories = request.firmware.clone();
    directories.extend(["usr/lib/firmware", "lib/firmware"].map(|below| kernel.root.join(below)));
    let mut missing = Vec::new();
    if request.profile == Profile::Full && !wanted.is_empty() {
        progress.step(&format!("firmware: looking for {} files in firmware packages", wanted.len()));
        let (found, not_offered) = firmware::from_packages(packages);
        directories.extend(found);
        missing = not_offered;
    }
    (firmware::find(wanted, &directories), missing)
}

/// `/init`, and what it needs before it has mounted anything.
fn add_agent(image: &mut Initramfs, agent: &StaticAgent) -> Result<(), InitramfsError> {
    image.file("init", 0o755, agent.bytes.clone())?;
    image.char_device("dev/console", 0o600, 5, 1)?;
    image.char_device("dev/null", 0o666, 1, 3)?;
    for directory in ["etc", "mnt", "proc", "run", "sys", "tmp"] {
        image.directory(directory)?;
    }
    Ok(())
}

fn add_modules(image: &mut Initramfs, tree: &KernelTree, selection: &Selection) -> Result<(), BuildError> {
    let below = format!("lib/modules/{}", tree.release);
    for name in &selection.modules {
        if let Some(module) = tree.modules.get(name) {
            let bytes = strip::without_debug(&module.file, tree::read_module(&module.file)?)?;
            image.file(&format!("{below}/{}", module.path), 0o644, bytes)?;
        }
    }
    for (name, text) in [
        ("modules.dep", index::dep(tree, selection)),
        ("modules.alias", index::alias(tree, selection)),
        ("modules.softdep", index::softdep(tree, selection)),
        ("modules.builtin", index::builtin(tree)),
    ] {
        image.file(&format!("{below}/{name}"), 0o644, text.into_bytes())?;
    }
    image.file("etc/farrier/modules.load", 0o644, index::load(selection).into_bytes())?;
    Ok(())
}

/// Each file is replaced whole: a controller serving the directory never serves half of one.
fn publish(out: &Path, vmlinuz: &[u8], initrd: &[u8], manifest: &Manifest) -> Result<(), BuildError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| BuildError::File { what: "write", path, source }
    };
    std::fs::create_dir_all(out).map_err(failed(out))?;
    let replace = |name: &str, write: &dyn Fn(&Path) -> std::io::Result<()>| {
        let path = out.join(name);
        let partial = out.join(format!(".{name}.partial"));
        write(&partial).and_then(|()| std::fs::rename(&partial, &path)).map_err(failed(&path))
    };
    replace("vmlinuz", &|path| std::fs::write(path, vmlinuz))?;
    replace("initrd.img", &|path| std::fs::write(path, initrd))?;
    replace("manifest.json", &|path| manifest.write(path))
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|source| BuildError::File { what: "read", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_elf::ElfFixture;
    use crate::test_tree::FakeKernel;

    const LIST: &str = "ext4 load\nbnx2x\nahci\n";

    fn kernel() -> FakeKernel {
        FakeKernel::new("6.1.0-test")
            .module("kernel/fs/ext4/ext4.ko", &["name=ext4", "depends=jbd2", "alias=fs-ext4"])
            .module("kernel/fs/jbd2/jbd2.ko", &["name=jbd2", "depends="])
            .module("kernel/net/bnx2x.ko", &["name=bnx2x", "alias=pci:v000014E4d*", "firmware=bnx2x/e2.fw"])
            .module("kernel/sound/snd.ko", &["name=snd", "alias=pci:v00001102d*", "firmware=snd.fw"])
            .builtin(&["kernel/drivers/ata/ahci.ko"])
    }

    /// A request whose every path is in `scratch`; the output directory is `out` in it.
    fn request(scratch: &Path, kernel: &FakeKernel) -> Request {
        let path = |name: &str| scratch.join(name);
        std::fs::write(path("agent"), ElfFixture::default().build()).expect("agent");
        std::fs::write(path("list"), LIST).expect("list");
        Request {
            out: path("out"),
            cache: path("cache"),
            profile: Profile::Vm,
            modules: Some(path("list")),
            agent: AgentSource::File(path("agent")),
            kernel: KernelSource::Tree(kernel.root().to_owned()),
            firmware: vec![path("firmware")],
            source_date_epoch: 1_700_000_000,
        }
    }

    fn contents(initrd: &Path) -> Vec<(String, Vec<u8>)> {
        let packed = std::fs::read(initrd).expect("initrd");
        let archive = zstd::decode_all(packed.as_slice()).expect("zstd");
        let mut rest = archive.as_slice();
        let mut found = Vec::new();
        loop {
            let reader = cpio::NewcReader::new(rest).expect("entry");
            if reader.entry().is_trailer() {
                return found;
            }
            let name = reader.entry().name().to_owned();
            let mut bytes = Vec::new();
            rest = reader.to_writer(&mut bytes).expect("contents");
            found.push((name, bytes));
        }
    }

    #[test]
    fn two_builds_from_two_places_are_the_same_byte_for_byte() {
        let builds: Vec<_> = (0..2)
            .map(|_| {
                let scratch = tempfile::tempdir().expect("scratch");
                let kernel = kernel();
                let request = request(scratch.path(), &kernel);
                let manifest = build(&request, &Progress::silent()).expect("build");
                let read = |name: &str| std::fs::read(request.out.join(name)).expect(name);
                (read("vmlinuz"), read("initrd.img"), manifest.initrd)
            })
            .collect();
        assert_eq!(builds[0], builds[1]);
        assert_eq!(builds[0].2, FileRecord::of(&builds[0].1));
    }

    #[test]
    fn the_image_holds_the_agent_the_selected_modules_and_their_indexes_only() {
        let scratch = tempfile::tempdir().expect("scratch");
        let kernel = kernel();
        let request = request(scratch.path(), &kernel);
        build(&request, &Progress::silent()).expect("build");
        let contents = contents(&request.out.join("initrd.img"));
        let text = |name: &str| {
            let found = contents.iter().find(|(path, _)| path == name).map(|(_, bytes)| bytes.clone());
            String::from_utf8(found.unwrap_or_else(|| panic!("{name} is missing"))).expect("text")
        };
        assert_eq!(text("etc/farrier/modules.load"), "ext4\n");
        assert_eq!(
            text("lib/modules/6.1.0-test/modules.dep"),
            "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\nkernel/fs/jbd2/jbd2.ko:\nkernel/net/bnx2x.ko:\n"
        );
        assert!(text("lib/modules/6.1.0-test/modules.alias").contains("alias pci:v000014E4d* bnx2x\n"));
        let names: Vec<&str> = contents.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["init", "dev/console", "dev/null", "proc", "lib/modules/6.1.0-test/kernel/net/bnx2x.ko"]
        {
            assert!(names.contains(&name), "{name} is missing from {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("snd")), "{names:?}");
    }

    #[test]
    fn firmware_is_taken_where_it_is_found_and_else_recorded() {
        let scratch = tempfile::tempdir().expect("scratch");
        let kernel = kernel();
        let request = request(scratch.path(), &kernel);
        let manifest = build(&request, &Progress::silent()).expect("build");
        assert!(manifest.firmware.missing["bnx2x"].contains("bnx2x/e2.fw"), "{:?}", manifest.firmware);
        std::fs::create_dir_all(scratch.path().join("firmware/bnx2x")).expect("dir");
        std::fs::write(scratch.path().join("firmware/bnx2x/e2.fw"), b"blob").expect("firmware");
        let manifest = build(&request, &Progress::silent()).expect("build");
        assert_eq!((manifest.firmware.files, manifest.firmware.missing.len()), (1, 0));
        let contents = contents(&request.out.join("initrd.img"));
        assert!(contents.contains(&("lib/firmware/bnx2x/e2.fw".into(), b"blob".to_vec())));
    }

    #[test]
    fn a_failed_build_leaves_the_last_image_alone() {
        let scratch = tempfile::tempdir().expect("scratch");
        let kernel = kernel();
        let request = request(scratch.path(), &kernel);
        build(&request, &Progress::silent()).expect("first build");
        let before = std::fs::read(request.out.join("initrd.img")).expect("initrd");
        std::fs::write(scratch.path().join("list"), "no_such_driver\n").expect("list");
        let error = build(&request, &Progress::silent()).expect_err("refused").to_string();
        assert!(error.contains("no_such_driver") && error.contains("list:1"), "{error}");
        let needy = ElfFixture::default().interpreter("/lib/ld.so").build();
        std::fs::write(scratch.path().join("agent"), needy).expect("agent");
        let error = build(&request, &Progress::silent()).expect_err("refused").to_string();
        assert!(error.contains("not static"), "{error}");
        assert_eq!(std::fs::read(request.out.join("initrd.img")).expect("initrd"), before);
    }
}

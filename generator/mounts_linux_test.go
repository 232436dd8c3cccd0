package generator_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/generator"
)

// inNamespace, set in the environment, allows the test binary to mount.
const inNamespace = "FOLLOWPRESS_TEST_NAMESPACE"

// withMounts runs the calling test again in a separate mount namespace, whose mounts vanish when it
// ends. It reports whether this is the nested run. A user namespace needs no root, but cannot mount
// disks.
func withMounts(t *testing.T, userNamespace bool) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), inNamespace+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if userNamespace {
		child.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
	}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(string(output), "--- PASS: "+t.Name()):
	case err == nil && strings.Contains(string(output), "--- SKIP: "+t.Name()):
		t.Skipf("in a namespace: %s", output)
	case err == nil || errors.As(err, &exit):
		t.Fatalf("in a namespace: got %v, want success\n%s", err, output)
	default:
		t.Skipf("cannot make a mount namespace (%v): run this test as root", err)
	}
	return false
}

// mount calls mount(8), which explains failures, and unmounts when the test ends. Not every machine
// allows it, and not every kernel has every file system.
func mount(t *testing.T, args ...string) {
	t.Helper()
	if output, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Skipf("cannot mount %q (%v: %s): run this test as root on a machine of its own", args, err, output)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(args[len(args)-1], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) { // already unmounted
			t.Error(err)
		}
	})
}

// overlay mounts an overlay over lower, like a container runtime over an image.
func overlay(t *testing.T, lower, options string) (merged string) {
	t.Helper()
	dir := t.TempDir()
	mount(t, "-t", "tmpfs", "tmpfs", dir) // an overlay over an overlay cannot be mounted
	merged = filepath.Join(dir, "merged")
	var made []string
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		made = append(made, filepath.Join(dir, name))
		if err := os.Mkdir(made[len(made)-1], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(made[0], os.DirFS(lower)); err != nil {
		t.Fatal(err)
	}
	mount(t, "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s%s", made[0], made[1], made[2], options), "overlay", merged)
	return merged
}

// image returns a folder with a site, a site as a tar file, and an empty folder.
func image(t *testing.T, s snapshot) string {
	t.Helper()
	dir := t.TempDir()
	onDisk(t, s, filepath.Join(dir, "site"), small)
	onDisk(t, s, filepath.Join(dir, "site.tar"), small)
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOverlay: a folder from an image can be neither moved nor exchanged. A run that needs to fails
// before the work; all others succeed.
func TestOverlay(t *testing.T) {
	if !withMounts(t, true) {
		return
	}
	old, next := beforeAndAfter()
	image := image(t, old)
	merged := overlay(t, image, ",userxattr")
	path := filepath.Join(merged, "site")
	before := stateOf(t, path)
	for _, rebuild := range []bool{false, true} {
		o := small
		o.Rebuild = rebuild
		var seen stageNames
		o.Progress = &seen
		_, err := generator.ToPath(t.Context(), next.fs(), path, o)
		wantError(t, err, path+" cannot be replaced in one step", "overlayfs", "or a .tar file", "publish --dest file://"+path)
		if text := strings.Join(seen, " "); strings.Contains(text, "write") || rebuild && text != "clean up" {
			t.Errorf("rebuild %t: got the stages %s, want none that is in vain", rebuild, text)
		}
		untouched(t, path, before)
		alone3(t, merged)
	}
	if w := onDisk(t, old, path, small).Written; !w.Unchanged {
		t.Errorf("report of the same site: got %+v, want unchanged", w)
	}
	untouched(t, path, before)

	for _, name := range []string{"empty", "site.tar", "fresh", "fresh.tar", "below/site"} {
		for i, s := range []snapshot{next, old, next} {
			path := filepath.Join(merged, name)
			onDisk(t, s, path, small)
			read := readFolder
			if strings.HasSuffix(name, ".tar") {
				read = readTar
			}
			if err := read(t, path).Compare(inMemory(t, s, small)); err != nil {
				t.Errorf("%s, run %d: got another site, want that of the snapshot: %v", name, i, err)
			}
		}
	}
}

// alone3 fails the test if a folder has more entries than image made.
func alone3(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("got %v in %s (%v), want the 3 entries as before", entries, dir, err)
	}
}

// TestOverlayWithoutAttributes: an overlay that cannot store attributes moves no folder at all, not
// even a new one.
func TestOverlayWithoutAttributes(t *testing.T) {
	if !withMounts(t, true) {
		return
	}
	old, next := beforeAndAfter()
	merged := overlay(t, image(t, old), "") // needs attributes that only root may set
	for _, name := range []string{"site", "empty", "fresh"} {
		path := filepath.Join(merged, name)
		var seen stageNames
		o := small
		o.Rebuild, o.Progress = true, &seen
		_, err := generator.ToPath(t.Context(), next.fs(), path, o)
		wantError(t, err, "a new folder cannot be moved to the output "+path+": name a .tar file")
		if len(seen) != 1 {
			t.Errorf("%s: got the stages %v, want none before it fails", name, seen)
		}
		alone3(t, merged)
	}
	onDisk(t, next, filepath.Join(merged, "site.tar"), small)
	if err := readTar(t, filepath.Join(merged, "site.tar")).Compare(inMemory(t, next, small)); err != nil {
		t.Error(err)
	}
}

// TestOverlayWithRedirects: here a folder of the image can be moved, so it is replaced.
func TestOverlayWithRedirects(t *testing.T) {
	needRoot(t)
	if !withMounts(t, false) {
		return
	}
	old, next := beforeAndAfter()
	path := filepath.Join(overlay(t, image(t, old), ",redirect_dir=on"), "site")
	onDisk(t, next, path, small)
	if err := readFolder(t, path).Compare(inMemory(t, next, small)); err != nil {
		t.Error(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("what this mounts only root can: run this test as root, outside of a user namespace")
	}
}

// TestBindMount: another folder or file of the same disk is mounted at the output.
func TestBindMount(t *testing.T) {
	if !withMounts(t, true) {
		return
	}
	old, next := beforeAndAfter()
	image, dir := image(t, old), t.TempDir()
	for name, advice := range map[string]string{
		"site":     "name a folder in it, such as " + filepath.Join(dir, "site", "site"),
		"site.tar": "mount its folder instead of the file",
	} {
		path := filepath.Join(dir, name)
		var err error
		if name == "site" {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		mount(t, "--bind", filepath.Join(image, name), path)
		before := stateOf(t, path)
		for _, rebuild := range []bool{false, true} {
			var seen stageNames
			o := small
			o.Rebuild, o.Progress = rebuild, &seen
			_, err := generator.ToPath(t.Context(), next.fs(), path, o)
			wantError(t, err, path+" is a mount point and cannot be replaced in one step: "+advice)
			if text := strings.Join(seen, " "); strings.Contains(text, "write") || rebuild && text != "clean up" {
				t.Errorf("%s, rebuild %t: got the stages %s, want none that is in vain", name, rebuild, text)
			}
			untouched(t, path, before)
		}
		if w := onDisk(t, old, path, small).Written; !w.Unchanged {
			t.Errorf("%s, report of the same site: got %+v, want unchanged", name, w)
		}
	}
}

// TestPowerFailure cuts the power of a disk during each of the last stages of a run, and after it.
// The old site or the new one comes back, complete; once the removal of the old one has begun, it
// is the new one.
func TestPowerFailure(t *testing.T) {
	needRoot(t)
	if !withMounts(t, false) {
		return
	}
	old, next := beforeAndAfter()
	sites := []objects{inMemory(t, old, small), inMemory(t, next, small)}
	synced := small
	synced.NoSync = false
	for _, p := range []struct {
		path string
		read func(testing.TB, string) objects
	}{{"new/folders/site", readFolder}, {"site.tar", readTar}} {
		for stage, want := range map[string]int{"sync": 0, "switch": 0, "clean up": 1, "": 1} {
			disk := newDisk(t)
			path := filepath.Join(disk.dir, p.path)
			onDisk(t, old, path, synced)
			o := synced
			o.Progress = stages(func(name string) {
				if name == stage {
					disk.fail(t)
				}
			})
			_, err := generator.ToPath(t.Context(), next.fs(), path, o)
			if stage == "" != (err == nil) {
				t.Errorf("%s: the power failed in the stage %q: got the error %v", p.path, stage, err)
			}
			disk.powerFailure(t)
			if got := whichSite(t, path, p.read, sites, 0); got != want {
				t.Errorf("%s: the power failed in the stage %q: got site %d, want %d", p.path, stage, got, want)
			}
			if stage == "switch" { // complete before it is in place
				work := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".followpress", "next")
				if err := p.read(t, work).Compare(sites[1]); err != nil {
					t.Errorf("%s: power failure before the switch: got another site, want the old one: %v", p.path, err)
				}
			}
			onDisk(t, next, path, synced)
			disk.powerFailure(t)
			if err := p.read(t, path).Compare(sites[1]); err != nil {
				t.Errorf("%s: run after a failure in the stage %q: got another site, want the new one: %v", p.path, stage, err)
			}
			disk.unmount(t)
		}
		// The sync makes the difference.
		disk := newDisk(t)
		path := filepath.Join(disk.dir, p.path)
		onDisk(t, old, path, small)
		disk.powerFailure(t)
		if _, err := os.Stat(path); err == nil && p.read(t, path).Compare(sites[0]) == nil {
			t.Errorf("%s: without a sync: got the whole site, want a damaged one", p.path)
		}
		disk.unmount(t)
	}
}

// A disk is an ext4 file system in a file.
type disk struct{ file, dir string }

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{filepath.Join(t.TempDir(), "disk"), t.TempDir()}
	if err := errors.Join(os.WriteFile(d.file, nil, 0o644), os.Truncate(d.file, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("mkfs.ext4", "-q", d.file).CombinedOutput(); err != nil {
		t.Skipf("cannot make a disk (%v: %s): install e2fsprogs", err, output)
	}
	d.mount(t)
	return d
}

// mount makes the disk write by itself so rarely that it never does during a test.
func (d *disk) mount(t *testing.T) {
	t.Helper()
	mount(t, "-o", "loop,commit=3000", d.file, d.dir)
}

func (d *disk) unmount(t *testing.T) {
	t.Helper()
	if output, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
		t.Fatalf("umount: got %v, want success: %s", err, output)
	}
}

// fail simulates a power failure: unwritten data is lost.
func (d *disk) fail(t *testing.T) {
	t.Helper()
	const (
		shutdown = 0x8004587d // EXT4_IOC_SHUTDOWN of linux/ext4.h
		noFlush  = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
	)
	root, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.IoctlSetPointerInt(int(root.Fd()), shutdown, noFlush)
	if err := errors.Join(err, root.Close()); err != nil && !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
}

// powerFailure simulates a power failure, unless there was one already, and mounts the disk again.
func (d *disk) powerFailure(t *testing.T) {
	t.Helper()
	if _, err := os.ReadDir(d.dir); err == nil {
		d.fail(t)
	}
	d.unmount(t)
	d.mount(t)
}

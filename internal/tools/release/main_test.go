package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/elf"
	"debug/macho"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	repository = "../../.."
	nobody     = 65534
)

// A machine is the place of an installed command: a folder used as the root, or this machine.
type machine struct {
	t       *testing.T
	root    string // empty for this machine
	command string
	demo    string // path of the demo snapshot on the machine
	work    string // path of an unwritable folder on the machine
}

// program returns the command as an unprivileged user, without the environment of this process.
func (m *machine) program(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env, c.Dir = []string{"HOME=" + m.work, "FOLLOWPRESS_NO_SYNC=1"}, m.work
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	return c
}

// says runs a program, which must succeed, and returns its output.
func (m *machine) says(name string, args ...string) string {
	m.t.Helper()
	output, err := m.program(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %v: %v: %s", name, args, err, output)
	}
	return string(output)
}

// works runs the command: it checks the version, then generates, publishes, verifies and serves the
// demo's site.
func (m *machine) works(version string) {
	m.t.Helper()
	if got := m.says(m.command, "version"); !strings.HasPrefix(got, "followpress "+version+" ") {
		m.t.Errorf("got %q, want %s", got, version)
	}
	m.serves(m.program(m.command, "preview"), "--addr", "/api/v1/leaderboard/followers")
	m.says(m.command, "publish", "--snapshot", m.demo, "--dest", "file://"+m.work+"/www")
	m.says(m.command, "verify", "--dest", "file://"+m.work+"/www")
	m.serves(m.program(m.command, "serve", "--site", m.work+"/www"), "--addr", "/api/v1/lists/104/searchFollowing?term=mir")
}

// serves starts a server at a free address, checks an answer, and ends it as systemd does.
func (m *machine) serves(c *exec.Cmd, flag, path string) {
	m.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	c.Args = append(c.Args, flag+"="+address) // the last of two equal flags counts
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	runtime.LockOSThread() // the end of the thread would kill the program
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	status := 0
	for begun := time.Now(); status != http.StatusOK && time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get("http://" + address + path); err == nil {
			response.Body.Close()
			status = response.StatusCode
		}
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	stuck := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() })
	defer stuck.Stop()
	if err := c.Wait(); err != nil || status != http.StatusOK {
		m.t.Errorf("%v: got the status %d of %s and the exit %v, want 200 and success: %s", c.Args, status, path, err, log.String())
	}
}

// folder creates a folder on a machine, writable by its user, with the demo next to it.
func (m *machine) folder(root string) *machine {
	m.t.Helper()
	m.work, m.demo = "/tmp/work", "/tmp/demo"
	if m.root == "" {
		m.work, m.demo = root+m.work, root+m.demo
	}
	if err := os.MkdirAll(root+"/tmp/work", 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chown(root+"/tmp/work", nobody, nobody); err != nil {
		m.t.Fatal(err)
	}
	if err := os.CopyFS(root+"/tmp/demo", os.DirFS(repository+"/fixtures/demo")); err != nil {
		m.t.Fatal(err)
	}
	return m
}

// shell runs lines of sh as root, which must succeed.
func shell(t *testing.T, dir, lines string) string {
	t.Helper()
	c := exec.Command("sh", "-euc", lines)
	c.Dir = dir
	output, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", lines, err, output)
	}
	return strings.TrimSpace(string(output))
}

// open creates a folder that every user may enter.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "followpress-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRelease builds a release, and installs and runs each file of it that this machine can run.
func TestRelease(t *testing.T) {
	version := os.Getenv("RELEASE_CHECK")
	if version == "" {
		t.Skip("it builds a release twice and installs it as root, which takes minutes: `make release-check` runs it")
	}
	if os.Getuid() != 0 {
		t.Fatal("this test uses chroot; run it as root")
	}
	out := open(t)
	if err := run(version, repository, out+"/dist"); err != nil {
		t.Fatal(err)
	}
	number, dist := strings.TrimPrefix(version, "v"), out+"/dist"
	shell(t, dist, "sha256sum --check --strict SHA256SUMS")

	t.Run("equal commits make equal bytes", func(t *testing.T) {
		if err := run(version, repository, out+"/again"); err != nil {
			t.Fatal(err)
		}
		shell(t, out, "diff -r dist again")
	})
	t.Run("archives", func(t *testing.T) { archives(t, dist, version) })
	t.Run("npm", func(t *testing.T) { npm(t, dist, number) })
	t.Run("debian", func(t *testing.T) { debian(t, dist, version) })
	t.Run("image", func(t *testing.T) { container(t, dist, version) })
}

func archives(t *testing.T, dist, version string) {
	number := strings.TrimPrefix(version, "v")
	for _, p := range platforms {
		name := fmt.Sprintf("followpress_%s_%s_%s", number, p.os, p.arch)
		root := open(t)
		shell(t, root, "tar -xzf "+dist+"/"+name+".tar.gz")
		got := shell(t, root, "ls "+name)
		if want := "CHANGELOG.md\nLICENSE\nREADME.md\nTHIRD_PARTY_LICENSES\nfollowpress"; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		runs(t, p, filepath.Join(root, name, "followpress"))
		if p.os == runtime.GOOS && p.arch == runtime.GOARCH {
			m := &machine{t: t, command: filepath.Join(root, name, "followpress")}
			m.folder(root).works(version)
		}
	}
}

// runs checks the platform of a binary.
func runs(t *testing.T, p platform, binary string) {
	t.Helper()
	var got string
	if f, err := elf.Open(binary); err == nil {
		defer f.Close()
		got = "linux " + f.Machine.String()
	} else if f, err := macho.Open(binary); err == nil {
		defer f.Close()
		got = "darwin " + f.Cpu.String()
	}
	want := map[platform]string{
		{"linux", "amd64"}: "linux EM_X86_64", {"linux", "arm64"}: "linux EM_AARCH64",
		{"darwin", "amd64"}: "darwin CpuAmd64", {"darwin", "arm64"}: "darwin CpuArm64",
	}[p]
	if got != want {
		t.Errorf("%s: got a binary for %q, want %s", binary, got, want)
	}
}

// npm installs the package without a network, and runs the example of its README.
func npm(t *testing.T, dist, number string) {
	root := open(t)
	m := (&machine{t: t}).folder(root)
	shell(t, root, "tar -xzf "+dist+"/followpress_"+number+"_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz --strip-components=1")
	m.says(root+"/followpress", "publish", "--api=efp", "--snapshot", m.demo, "--dest", "file://"+m.work+"/www")
	site := httptest.NewServer(http.FileServer(http.Dir(m.work + "/www")))
	defer site.Close()
	shell(t, root, "echo '{\"type\":\"module\"}' >package.json; npm install --offline --no-audit --no-fund --silent "+dist+"/followpress-client-"+number+".tgz")
	readme, err := os.ReadFile(root + "/node_modules/@followpress/client/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```js\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.NewReplacer("https://bucket.example/", site.URL+"/", "alice.eth", "everyonesfriend.eth", "await alice", "const page = await alice").Replace(example)
	if err := os.WriteFile(root+"/example.js", []byte(example+"console.log(page.followers.length);"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, root, "node example.js"); got != "4" {
		t.Errorf("the example of the README: got %s followers, want 4\n%s", got, example)
	}
}

// debian installs the package on a bare Debian, and runs the commands of its units as an
// unprivileged user.
func debian(t *testing.T, dist, version string) {
	for _, p := range platforms {
		if p.os == "linux" {
			dir, deb := open(t), dist+"/followpress_"+strings.TrimPrefix(version, "v")+"_"+p.arch+".deb"
			if got := shell(t, dir, "dpkg-deb --extract "+deb+" .; dpkg-deb --field "+deb+" Architecture"); got != p.arch {
				t.Errorf("%s: got the architecture %s", deb, got)
			}
			runs(t, p, dir+"/usr/bin/followpress")
		}
	}
	root := open(t)
	shell(t, root, `eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
		[ -z "${http_proxy:-}" ] || export http_proxy
		debootstrap --variant=minbase --include=systemd bookworm . "${MIRROR:-http://deb.debian.org/debian}" >/dev/null`)
	deb := "followpress_" + strings.TrimPrefix(version, "v") + "_" + runtime.GOARCH + ".deb"
	shell(t, root, "cp "+dist+"/"+deb+" tmp; chroot . dpkg --install /tmp/"+deb)
	if got := shell(t, root, "stat -c '%a %u' etc/followpress.env"); got != "600 0" {
		t.Errorf("the settings: got the mode and owner %s, want 600 0", got)
	}
	if got := shell(t, root, "chroot . systemd-analyze verify --man=no followpress-serve.service followpress-live.service followpress-nightly.service followpress-nightly.timer"); got != "" {
		t.Errorf("units: got %s, want none", got)
	}
	m := (&machine{t: t, root: root, command: "/usr/bin/followpress"}).folder(root)
	m.works(version)

	shell(t, root, "mkdir -p var/lib/followpress; chown 65534:65534 var/lib/followpress")
	unit := func(name string) (all []*exec.Cmd) {
		text, err := os.ReadFile(root + "/usr/lib/systemd/system/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(line[1])
			c := m.program(args[0], args[1:]...)
			c.Env = append(c.Env, "FOLLOWPRESS_SITE="+m.work+"/www", "FOLLOWPRESS_DEST=file://"+m.work+"/nightly", "FOLLOWPRESS_RPC=8453=http://127.0.0.1:1;10=http://127.0.0.1:1;1=http://127.0.0.1:1")
			all = append(all, c)
		}
		return all
	}
	m.serves(unit("followpress-serve.service")[0], "--addr", "/api/v1/leaderboard/following?limit=3")
	live := unit("followpress-live.service")[0]
	live.Args = append(live.Args, "--addr=127.0.0.1:0")
	m.serves(live, "--metrics-addr", "/status.json")
	// No node answers, so the demo replaces the snapshot of the first step.
	nightly := unit("followpress-nightly.service")
	if output, err := nightly[0].CombinedOutput(); err == nil || !strings.Contains(string(output), "connection refused") {
		t.Errorf("%v: got %v: %s, want a failure, since no node answers", nightly[0].Args, err, output)
	}
	shell(t, root, "cp -r tmp/demo var/lib/followpress/snapshot")
	for _, c := range nightly[1:] {
		if output, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", c.Args, err, output)
		}
	}
	shell(t, root, "chroot . dpkg --purge followpress; ! ls usr/bin/followpress etc/followpress.env 2>/dev/null")
}

// container unpacks the images, and runs the command of this machine's.
func container(t *testing.T, dist, version string) {
	dir := open(t)
	shell(t, dir, "tar -xf "+dist+"/followpress_"+strings.TrimPrefix(version, "v")+"_image.tar")
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("got %+v (%v), want one index", top, err)
	}
	all, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := all.IndexManifest()
	if err != nil || len(images.Manifests) != 2 {
		t.Fatalf("got %+v (%v), want the images of two platforms", images, err)
	}
	for _, d := range images.Manifests {
		image, err := all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		root := unpacked(t, image)
		runs(t, platform{d.Platform.OS, d.Platform.Architecture}, root+"/usr/local/bin/followpress")
		if d.Platform.Architecture == runtime.GOARCH {
			m := &machine{t: t, root: root, command: "/usr/local/bin/followpress"}
			m.folder(root).works(version)
		}
	}
}

// unpacked returns the root folder of an image, and checks its configuration and certificates.
func unpacked(t *testing.T, image v1.Image) (root string) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "followpress" || c.Cmd[0] != "preview" {
		t.Errorf("got the configuration %+v", c)
	}
	files := mutate.Extract(image)
	defer files.Close()
	root = open(t)
	untar := exec.Command("tar", "-xp", "-C", root)
	untar.Stdin = files
	if output, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	trusted, err := os.ReadFile(root + "/etc/ssl/certs/ca-certificates.crt")
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(trusted) || bytes.Count(trusted, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("got %d bytes of certificates (%v), want those of the web", len(trusted), err)
	}
	return root
}

// An archive does not depend on the order of its files, or on the time.
func TestZippedIsReproducible(t *testing.T) {
	at := time.Unix(1700000000, 0)
	var one, two bytes.Buffer
	a, b := file{"a", 0o644, []byte("text")}, file{"b/", 0o755, nil}
	for w, files := range map[io.Writer][]file{&one: {a, b}, &two: {b, a}} {
		if err := zipped(w, files, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("another order gives different bytes")
	}
	z, err := gzip.NewReader(&one)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(z).Next(); err != nil || h.Name != "a" || !h.ModTime.Equal(at) || h.Uid != 0 {
		t.Errorf("got %+v (%v), want a of root, as of the given time", h, err)
	}
}

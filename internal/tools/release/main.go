// Command release builds the files of a release from the checked-out commit: archives with the
// command for each system, Debian packages, the container image as an OCI archive, the npm package,
// a list of components (SBOM) and checksums. Equal commits, Go releases and versions make equal
// bytes. After downloading modules it needs no network. It needs git, npm and dpkg-deb.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Every platform has an archive; Linux platforms also have a package and an image.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

type platform struct{ os, arch string }

// A release is a release in progress. Its tree is a clone of the commit, so it contains no
// uncommitted files.
type release struct {
	version   string // version, including the v
	tree, out string
	commit    string
	time      time.Time // time of the commit
	licences  []byte    // licences of everything in the command
}

func main() {
	version := flag.String("version", "", "the version, such as v1.2.3 or v1.2.3-rc.1")
	repository := flag.String("repository", "../../..", "the clone of followpress")
	out := flag.String("out", "", "folder for the files; an existing one is replaced")
	flag.Parse()
	if err := run(*version, *repository, *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, repository, out string) error {
	if semver.Canonical(version) != version || version == "" || out == "" {
		return fmt.Errorf("got the version %q and the folder %q, want a version such as v1.2.3 and a folder", version, out)
	}
	temporary, err := os.MkdirTemp("", "followpress-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	r := &release{version: version, tree: filepath.Join(temporary, "tree")}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := r.clone(repository); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	modules, err := r.modules()
	if err != nil {
		return err
	}
	if r.licences, err = r.texts(modules); err != nil {
		return err
	}
	if err := r.components(modules); err != nil {
		return err
	}
	image := &image{release: r}
	for _, p := range platforms {
		binary := filepath.Join(temporary, p.os+"-"+p.arch, "followpress")
		if err := r.build(p, binary); err != nil {
			return err
		}
		if err := r.archive(p, binary); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		if err := r.debian(p, binary, filepath.Join(temporary, "deb-"+p.arch)); err != nil {
			return err
		}
		if err := image.add(p, binary); err != nil {
			return err
		}
	}
	if err := image.write(filepath.Join(temporary, "image")); err != nil {
		return err
	}
	if err := r.npm(); err != nil { // last, because it writes into the tree
		return err
	}
	return r.checksums()
}

// number returns the version without its v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// command runs a program in the tree and returns its output.
func (r *release) command(env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = r.tree, os.Stderr
	c.Env = append(append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()), "LC_ALL=C"), env...)
	output, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// clone clones the tree. The tag lets Go write the version into the command; a tag of another
// commit is an error.
func (r *release) clone(repository string) error {
	if err := os.Mkdir(r.tree, 0o755); err != nil {
		return err
	}
	repository, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	if _, err := r.command(nil, "git", "clone", "--quiet", "--shared", repository, "."); err != nil {
		return err
	}
	tagged, _ := r.command(nil, "git", "tag", "--points-at", "HEAD", "--list", r.version)
	if tagged == "" {
		if _, err := r.command(nil, "git", "tag", r.version); err != nil {
			return err
		}
	}
	about, err := r.command(nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscanf(about, "%s %d", &r.commit, &seconds); err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

func (r *release) build(p platform, binary string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch}
	if _, err := r.command(env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, "./cmd/followpress"); err != nil {
		return err
	}
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		return nil
	}
	says, err := r.command(nil, binary, "version")
	if err == nil && !strings.HasPrefix(says, "followpress "+r.version+" ") {
		err = fmt.Errorf("the command calls itself %q, want %s", says, r.version)
	}
	return err
}

// contents returns the files next to the command in archives, by path.
func (r *release) contents() (all []file, err error) {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.tree, name))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, 0o644, text})
	}
	return append(all, file{"THIRD_PARTY_LICENSES", 0o644, r.licences}), nil
}

func (r *release) archive(p platform, binary string) error {
	command, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("followpress_%s_%s_%s", r.number(), p.os, p.arch)
	files, err := r.contents()
	if err != nil {
		return err
	}
	files = append(files, file{"followpress", 0o755, command})
	for i := range files {
		files[i].name = name + "/" + files[i].name
	}
	return r.create(name+".tar.gz", func(w io.Writer) error { return zipped(w, files, r.time) })
}

// debian makes a package of the files in the folder deb, the command, and the texts.
func (r *release) debian(p platform, binary, folder string) error {
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(r.tree, "internal/tools/release/deb"))); err != nil {
		return err
	}
	command, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	texts, err := r.contents()
	if err != nil {
		return err
	}
	// In Debian's order, 1.0.0~rc.1 precedes 1.0.0.
	control := fmt.Sprintf(`Package: followpress
Version: %s
Architecture: %s
Maintainer: followpress <followpress@users.noreply.github.com>
Section: net
Priority: optional
Recommends: ca-certificates
Homepage: https://github.com/followpress/followpress
Description: static JSON API of a social follow graph
 followpress turns a snapshot of a social follow graph into files whose paths
 are those of the API, publishes them, and answers what no file can.
`, strings.Replace(r.number(), "-", "~", 1), p.arch)
	files := []file{
		{"DEBIAN/control", 0o644, []byte(control)},
		{"DEBIAN/conffiles", 0o644, []byte("/etc/followpress.env\n")},
		{"usr/bin/followpress", 0o755, command},
	}
	for _, f := range texts {
		if f.name == "LICENSE" {
			f.name = "copyright"
		}
		files = append(files, file{"usr/share/doc/followpress/" + f.name, f.mode, f.text})
	}
	for _, f := range files {
		path := filepath.Join(folder, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.text, f.mode); err != nil {
			return err
		}
	}
	// The settings contain credentials.
	if err := os.Chmod(filepath.Join(folder, "etc/followpress.env"), 0o600); err != nil {
		return err
	}
	_, err = r.command(nil, "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", folder,
		filepath.Join(r.out, fmt.Sprintf("followpress_%s_%s.deb", r.number(), p.arch)))
	return err
}

// npm packs the client library.
func (r *release) npm() error {
	if _, err := r.command(nil, "npm", "--prefix", "client", "pkg", "set", "version="+r.number()); err != nil {
		return err
	}
	_, err := r.command([]string{"npm_config_update_notifier=false", "npm_config_offline=true"},
		"npm", "pack", "./client", "--silent", "--pack-destination", r.out)
	return err
}

func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(text), e.Name()))
		fmt.Printf("%11d  %s\n", len(text), e.Name())
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}

// create writes a file of the release.
func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}

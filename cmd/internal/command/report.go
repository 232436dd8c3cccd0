package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	json "github.com/goccy/go-json"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/site"
)

// StandardOutput is the name of a report that goes to standard output.
const StandardOutput = "-"

// Inside reports whether a path is a folder or inside it. Neither need exist.
func Inside(name, folder string) bool {
	if name == "" || name == StandardOutput {
		return false
	}
	rel, err := filepath.Rel(withoutLinks(folder), withoutLinks(name))
	return err == nil && filepath.IsLocal(rel)
}

// withoutLinks makes a path absolute and resolves its links, even if their targets do not exist.
func withoutLinks(path string) string {
	const most = 40 // the kernel's limit
	return resolved(path, most)
}

// resolved implements withoutLinks with a limit on dangling links.
func resolved(path string, links int) string {
	real, err := filepath.EvalSymlinks(path)
	to, noLink := os.Readlink(path)
	dir := filepath.Dir(path)
	switch {
	case err == nil:
		path = real
	case noLink == nil && links > 0:
		if !filepath.IsAbs(to) {
			to = filepath.Join(resolved(dir, links-1), to)
		}
		return resolved(to, links-1)
	case dir != path:
		path = filepath.Join(resolved(dir, links), filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// CheckFile checks early that a flag names a writable file outside any site or snapshot. Parent
// folders of output count as existing, since the run creates them; output may be "".
func CheckFile(flag, name, output string) error {
	if name == "" || name == StandardOutput {
		return nil
	}
	if flag == "report" && strings.EqualFold(filepath.Ext(name), ".html") {
		return fmt.Errorf("--report=%s: the report is JSON; name a file like report.json", name)
	}
	if of := partOf(name); of != "" {
		return fmt.Errorf("--%s=%s would replace or join %s: name another file", flag, name, of)
	}
	dir, mustWrite := filepath.Dir(name), name
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return fmt.Errorf("--%s=%s is a folder: name a file", flag, name)
	} else if err != nil {
		if _, noLink := os.Readlink(name); noLink == nil { // its target is written
			dir = filepath.Dir(withoutLinks(name))
		}
		mustWrite = dir + "/"
	}
	err = unix.Access(mustWrite, unix.W_OK)
	switch {
	case errors.Is(err, fs.ErrNotExist) && output != "" && Inside(output, dir):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s=%s: the folder %s does not exist; create it, or name another file", flag, name, dir)
	case err != nil:
		return fmt.Errorf("--%s=%s cannot be written: %w", flag, name, err)
	}
	return nil
}

// partOf names the site or snapshot that a file belongs or would belong to; "" if none.
func partOf(name string) string {
	if isTar(name) {
		return "the tar file " + name
	}
	for dir := filepath.Dir(withoutLinks(name)); ; dir = filepath.Dir(dir) {
		holds := func(pattern string) bool {
			found, err := fs.Glob(os.DirFS(dir), pattern) // filepath.Glob would read the folder as a pattern
			return err == nil && len(found) > 0
		}
		switch {
		case holds(string(site.RootKey)):
			return "the site in " + dir
		case holds("meta.json") && holds("lists*"):
			return "the snapshot in " + dir
		case dir == filepath.Dir(dir):
			return ""
		}
	}
}

func isTar(name string) bool {
	const magic, at = "ustar", 257
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false // opening a pipe would block until the run writes to it
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	got := make([]byte, len(magic))
	_, err = file.ReadAt(got, at)
	return err == nil && string(got) == magic
}

// WriteReport writes a report as JSON to the named file; "" writes nothing.
func WriteReport(name string, report any, stdout io.Writer) error {
	if name == "" {
		return nil
	}
	body, err := EncodeReport(report)
	if err != nil {
		return err
	}
	return WriteFile(name, body, stdout)
}

// reportVersion is the member "version" of a run's report. Increase it when a member disappears or
// changes meaning.
const reportVersion = 1

// EncodeReport encodes the report of a run, a struct, as JSON with the version as its first member.
func EncodeReport(report any) ([]byte, error) {
	body, err := json.MarshalIndentWithOption(report, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return fmt.Appendf(nil, "{\n  \"version\": %d,%s\n", reportVersion, body[1:]), nil
}

// WriteFile writes an encoded report to the named file, or to StandardOutput.
func WriteFile(name string, body []byte, stdout io.Writer) (err error) {
	if name == StandardOutput {
		_, err = stdout.Write(body)
	} else {
		err = os.WriteFile(name, body, 0o644)
	}
	if err != nil {
		return errors.Join(errors.New("the run is done, but its report cannot be written"), err)
	}
	return nil
}

// WriteSummary appends to the job summary of GitHub Actions, if there is one. It escapes untrusted
// text (plain.Text).
func WriteSummary(markdown string) (err error) {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	_, err = file.WriteString(plain.Text(markdown))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	return nil
}

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
)

// StandardOutput is the name of a report that goes to standard output.
const StandardOutput = "-"

// ReportInside reports whether the file of a report would be inside path, or is path
// itself, even if links or mounts give them different names.
func ReportInside(report, folder string) bool {
	if report == "" || report == StandardOutput {
		return false
	}
	within, inside := withoutLinks(folder), withoutLinks(report)
	if rel, err := filepath.Rel(within, inside); err == nil && filepath.IsLocal(rel) {
		return true
	}
	// A folder may have two names even without links: letter case, or a bind mount.
	at, err := os.Stat(within)
	if err != nil {
		return false
	}
	for ; ; inside = filepath.Dir(inside) {
		if info, err := os.Stat(inside); err == nil && os.SameFile(at, info) {
			return true
		}
		if inside == filepath.Dir(inside) {
			return false
		}
	}
}

// withoutLinks makes a path absolute and resolves its links, even if the target does
// not exist yet.
func withoutLinks(path string) string {
	const mostLinks = 40 // as in the kernel
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	links := 0
	for there := path; there != filepath.Dir(there); there = filepath.Dir(there) {
		rest := strings.TrimPrefix(path, there)
		if real, err := filepath.EvalSymlinks(there); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(there); err == nil && links < mostLinks {
			links++
			if !filepath.IsAbs(to) {
				to = filepath.Join(withoutLinks(filepath.Dir(there)), to)
			}
			path = filepath.Join(to, rest)
			there = filepath.Join(path, "below") // begin again
		}
	}
	return path
}

// CheckReport checks before the work whether WriteReport will be able to write the
// file. The parent folders of output, if it is not "", count as existing, since the
// work creates them.
func CheckReport(name, output string) error { return CheckFile("report", name, output) }

// CheckFile is CheckReport for the file of another flag.
func CheckFile(flag, name, output string) error {
	if name == "" || name == StandardOutput {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("--%s=%s is a folder: name a file", flag, name)
	case err == nil:
		if err := unix.Access(name, unix.W_OK); err != nil {
			return fmt.Errorf("--%s=%s cannot be written: %w", flag, name, err)
		}
		return nil
	}
	// A link to a file that does not exist yet may point elsewhere; the folder of its
	// target counts.
	dir := filepath.Dir(withoutLinks(name))
	file, err := os.CreateTemp(dir, ".report-*")
	switch {
	case errors.Is(err, fs.ErrNotExist) && output != "" && ReportInside(output, dir):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s=%s: the folder %s is not there: make it, or name another file", flag, name, filepath.Dir(name))
	case err != nil:
		return fmt.Errorf("--%s=%s cannot be written: %w", flag, name, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// WriteReport writes a report as JSON to the file with that name; "" writes nothing.
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

// EncodeReport encodes a report as JSON.
func EncodeReport(report any) ([]byte, error) {
	body, err := json.MarshalIndentWithOption(report, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return append(body, '\n'), nil
}

// WriteFile writes an encoded report to the file with that name, which may be StandardOutput.
func WriteFile(name string, body []byte, stdout io.Writer) (err error) {
	if name == StandardOutput {
		_, err = stdout.Write(body)
	} else {
		err = os.WriteFile(name, body, 0o644)
	}
	if err != nil {
		return errors.Join(errors.New("the run is done, but its report is not written"), err)
	}
	return nil
}

// WriteSummary adds to the summary of a job of GitHub Actions, if this is one.
func WriteSummary(markdown string) (err error) {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	_, err = file.WriteString(markdown)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	return nil
}

package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is the limit of links in a path, as in Linux.
const maxLinks = 40

// folderIdentity identifies the folder that a path leads to and the links on the way, including
// when each of them was put in its place. So it changes even if a link led elsewhere in between, or
// if a folder was renamed and came back. It also changes when an entry is added to the folder.
// It is "" if the folder cannot be identified.
func folderIdentity(path string) string {
	var identity strings.Builder
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for range maxLinks {
		link, target, rest := firstLink(path)
		if link == "" {
			identity.WriteString(fileIdentity(path))
			return identity.String()
		}
		identity.WriteString(fileIdentity(link))
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
	}
	return ""
}

// firstLink returns the first symbolic link of a path, its target, and the rest of the path, or ""
// if the path has no link.
func firstLink(path string) (link, target, rest string) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		if target, err := os.Readlink(path[:end]); err == nil {
			return path[:end], target, path[end:]
		}
	}
	return "", "", ""
}

// fileIdentity identifies a file or link and when it was last moved or changed.
func fileIdentity(path string) string {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d.%09d ", stat.Dev, stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
}

package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is the maximum number of links in a path, as in Linux.
const maxLinks = 40

// folderIdentity identifies the folder at a path and the links on the way, including when each was put in place. So
// it also changes if a link pointed elsewhere in between, if a folder was renamed and came back, or if an entry was
// added to the folder. It returns "" if it cannot identify the folder.
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

// firstLink returns the first symbolic link in a path, its target, and the rest of the path. Without links, all are
// "".
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

// fileIdentity identifies a file or link and its last move or change.
func fileIdentity(path string) string {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d.%09d ", stat.Dev, stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
}

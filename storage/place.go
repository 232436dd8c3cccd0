package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks is how many links a path may lead over, as the system has it.
const mostLinks = 40

// placeOf tells the folder that a path leads to now, and the links on the way: which they
// are, and since when each has been at its place. So a link that led elsewhere in between,
// or a folder that was renamed and came back, makes a difference. Where anything is put
// right into the folder, that does too. It is "" where that cannot be told.
func placeOf(path string) string {
	var place strings.Builder
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for range mostLinks {
		link, target, rest := firstLink(path)
		if link == "" {
			place.WriteString(since(path))
			return place.String()
		}
		place.WriteString(since(link))
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
	}
	return ""
}

// firstLink is the first symbolic link of a path, where it leads to, and what is left of
// the path then; "" for none.
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

// since tells a file or a link from others, and from itself before it was moved.
func since(path string) string {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d.%09d ", stat.Dev, stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
}

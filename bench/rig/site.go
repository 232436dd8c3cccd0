package rig

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// LargestList returns the list with the most follows in a site's folder, according to its search
// shards.
func LargestList(site string) (token string, follows int, err error) {
	base := filepath.Join(site, "_search", "lists")
	lists, err := os.ReadDir(base)
	if err != nil {
		return "", 0, err
	}
	total := regexp.MustCompile(`"total":(\d+)`)
	for _, list := range lists {
		head := make([]byte, 200)
		file, err := os.Open(filepath.Join(base, list.Name(), "0"))
		if err != nil {
			return "", 0, err
		}
		_, err = io.ReadFull(file, head)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", 0, err
		}
		if match := total.FindSubmatch(head); match != nil {
			if n, _ := strconv.Atoi(string(match[1])); n > follows {
				token, follows = list.Name(), n
			}
		}
	}
	return token, follows, nil
}

// Lists returns the lists of a site's folder.
func Lists(site string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(site, "api", "v1", "lists"))
	tokens := make([]string, len(entries))
	for i, entry := range entries {
		tokens[i] = entry.Name()
	}
	return tokens, err
}

// Package explorer holds the page that shows a site to people.
package explorer

// A File is a file of the explorer.
type File struct {
	Name string // without a folder
	Body []byte
}

// The files whose names stay. All others have a hash of their content in their names.
const (
	Page   = "index.html"
	Worker = "sw.js"
)

// Files returns the files of the explorer, sorted by name. Callers must not change them.
func Files() []File {
	return []File{
		{"explorer-AAAAAAAA.css", []byte("p{color:red}")},
		{"explorer-AAAAAAAA.js", []byte("console.log(1)")},
		{Page, []byte("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>followpress</title>\n<script type=\"module\" src=\"explorer-AAAAAAAA.js\"></script>\n</html>\n")},
		{Worker, []byte("self.addEventListener('fetch', () => {})")},
	}
}

// Package dataset writes tables of a graph as Parquet files, with a digest of their rows that does
// not depend on the encoding, and the data package that describes them.
package dataset

import (
	"regexp"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A File describes a file in a Package.
type File struct {
	Path  string // relative to the package
	Table *Table
	Facts
}

// Facts are known once a file has been written.
type Facts struct {
	Rows, Bytes int64
	Digest      site.SHA256 // digest of the bytes
	RowsDigest  site.SHA256 // digest of the rows in canonical form (docs/site.md)
}

// Package returns the description of the files, a data package as defined by
// https://specs.frictionlessdata.io. asOf is the time of the snapshot in RFC 3339. An empty licence
// is omitted.
func Package(asOf, licence string, files []File) []byte {
	p := dataPackage{Profile: "data-package", Name: "followpress", Title: "A graph of who follows whom", AsOf: asOf, Resources: []resource{}}
	if licence != "" {
		p.Licence, p.Licenses = licence, []license{licenseOf(licence)}
	}
	for _, f := range files {
		r := resource{
			Name: strings.TrimSuffix(f.Path, ".parquet"), Path: f.Path, Title: f.Table.Title, Format: "parquet", MediaType: "application/vnd.apache.parquet",
			Table: f.Table.Name, Rows: f.Rows, Bytes: f.Bytes, Hash: "sha256:" + f.Digest.String(), RowsDigest: "sha256:" + f.RowsDigest.String(),
		}
		for _, c := range f.Table.Columns {
			r.Schema.Fields = append(r.Schema.Fields, field{c.Name, c.Type.name(), c.Unit, c.Meaning, constraints{!c.Null}})
		}
		p.Resources = append(p.Resources, r)
	}
	body, err := json.MarshalWithOption(p, json.DisableHTMLEscape())
	if err != nil {
		panic(err) // only texts and numbers
	}
	return body
}

type dataPackage struct {
	Profile   string     `json:"profile"`
	Name      string     `json:"name"`
	Title     string     `json:"title"`
	AsOf      string     `json:"as_of"`
	Licence   string     `json:"licence,omitempty"`
	Licenses  []license  `json:"licenses,omitempty"`
	Resources []resource `json:"resources"`
}

type license struct {
	Name  string `json:"name,omitempty"`
	Path  string `json:"path,omitempty"`
	Title string `json:"title"`
}

type resource struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	Title      string `json:"title"`
	Format     string `json:"format"`
	MediaType  string `json:"mediatype"`
	Table      string `json:"table"` // the table of which the file is a part
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	Hash       string `json:"hash"`
	RowsDigest string `json:"rows_hash"`
	Schema     struct {
		Fields []field `json:"fields"`
	} `json:"schema"`
}

type field struct {
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Unit        string      `json:"unit,omitempty"`
	Description string      `json:"description"`
	Constraints constraints `json:"constraints"`
}

type constraints struct {
	Required bool `json:"required"`
}

// name returns the type's name in a table schema.
func (t Type) name() string {
	return map[Type]string{Text: "string", Sorted: "string", LongText: "string", Texts: "array", Bool: "boolean", Int: "integer", Rank: "integer", RowNumber: "integer", Time: "datetime"}[t]
}

var isLicenseName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`).MatchString

// licenseOf describes a licence, which must have a name or a URL in a data package.
func licenseOf(text string) license {
	switch {
	case strings.HasPrefix(text, "https://"):
		return license{Path: text, Title: text}
	case isLicenseName(text):
		return license{Name: text, Title: text}
	}
	return license{Name: "other", Title: text}
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// A module is a Go module that the command contains on some platform.
type module struct {
	Path, Version, Sum, Dir string
}

// modules returns the modules of the command, by path.
func (r *release) modules() ([]module, error) {
	all := map[string]module{}
	for _, p := range platforms {
		list, err := r.command([]string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch},
			"go", "list", "-deps", "-json=Module", "./cmd/followpress")
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(strings.NewReader(list)); ; {
			var in struct{ Module *module }
			if err := decoder.Decode(&in); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if in.Module != nil && in.Module.Version != "" { // neither the standard library nor followpress itself
				all[in.Module.Path] = *in.Module
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// texts joins the licenses of Go, of the modules, and of the libraries for browsers. A missing
// license is an error.
func (r *release) texts(modules []module) ([]byte, error) {
	root, err := r.command(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders := []module{{Path: "Go", Version: runtime.Version(), Dir: root}}
	folders = append(folders, modules...)
	for _, pattern := range []string{"explorer/lib/*", "client/lib/*"} {
		found, err := filepath.Glob(filepath.Join(r.tree, pattern))
		if err != nil {
			return nil, err
		}
		for _, dir := range found {
			folders = append(folders, module{Path: filepath.Base(dir), Dir: dir})
		}
	}
	var all bytes.Buffer
	for _, m := range folders {
		found := 0
		for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "NOTICE*", "PATENTS"} {
			files, err := filepath.Glob(filepath.Join(m.Dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&all, "======== %s\n\n%s\n", strings.TrimSpace(m.Path+" "+m.Version+" "+filepath.Base(f)), text)
				found++
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("%s %s has no licence in %s", m.Path, m.Version, m.Dir)
		}
	}
	return all.Bytes(), nil
}

// components writes the components of the command, as CycloneDX.
func (r *release) components(modules []module) error {
	bom := cyclonedx.NewBOM()
	purl := "pkg:golang/github.com/followpress/followpress@" + r.version
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &cyclonedx.Component{
		BOMRef: purl, Type: cyclonedx.ComponentTypeApplication, Name: "followpress", Version: r.version, PackageURL: purl,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "MIT"}}},
	}}
	components := []cyclonedx.Component{{Name: "std", Version: runtime.Version(), PackageURL: "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go")}}
	for _, m := range modules {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		components = append(components, cyclonedx.Component{Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}})
	}
	scripts, err := r.scripts()
	if err != nil {
		return err
	}
	components = append(components, scripts...)
	needs := []string{}
	for i := range components {
		components[i].Type, components[i].BOMRef = cyclonedx.ComponentTypeLibrary, components[i].PackageURL
		needs = append(needs, components[i].PackageURL)
	}
	bom.Components, bom.Dependencies = &components, &[]cyclonedx.Dependency{{Ref: purl, Dependencies: &needs}}
	return r.create(fmt.Sprintf("followpress_%s.cdx.json", r.number()), func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	})
}

// scripts returns the libraries in the explorer, with their dependencies.
func (r *release) scripts() (all []cyclonedx.Component, err error) {
	text, err := os.ReadFile(filepath.Join(r.tree, "explorer/package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, err
	}
	for _, at := range slices.Sorted(maps.Keys(lock.Packages)) {
		name, of := strings.CutPrefix(at, "node_modules/")
		if p := lock.Packages[at]; of && !p.Dev {
			all = append(all, cyclonedx.Component{Name: name, Version: p.Version, PackageURL: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version})
		}
	}
	return all, nil
}

package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// An image has the command, certificates, a user and a folder for temporary files. It has no shell
// and no distribution, so all its components are in go.sum.
type image struct {
	*release
	index v1.ImageIndex
}

// add adds the image of a platform.
func (i *image) add(p platform, binary string) error {
	command, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := []file{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
		{"tmp/", 0o1777, nil},
		{"usr/local/bin/followpress", 0o755, command},
	}
	texts, err := i.contents()
	if err != nil {
		return err
	}
	for _, f := range texts {
		f.name = "usr/share/doc/followpress/" + f.name
		files = append(files, f)
	}
	var b bytes.Buffer
	if err := zipped(&b, files, i.time); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	made := v1.Time{Time: i.time}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	full, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: made, CreatedBy: "followpress release"}})
	if err != nil {
		return err
	}
	config, err := full.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, made
	config.Config = v1.Config{
		User: "65532:65532", Entrypoint: []string{"followpress"}, Cmd: []string{"preview", "--addr", "0.0.0.0:8080"},
		Env:          []string{"PATH=/usr/local/bin"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.source": "https://github.com/followpress/followpress", "org.opencontainers.image.licenses": "MIT",
			"org.opencontainers.image.version": i.version, "org.opencontainers.image.revision": i.commit,
		},
	}
	if full, err = mutate.ConfigFile(full, config); err != nil {
		return err
	}
	if i.index == nil {
		i.index = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	}
	i.index = mutate.AppendManifests(i.index, mutate.IndexAddendum{Add: full, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	return nil
}

// write writes the images of all platforms as one OCI archive, through a folder.
func (i *image) write(folder string) error {
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": i.version}
	if err := written.AppendIndex(i.index, layout.WithAnnotations(name)); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		files = append(files, file{inside, 0o644, text})
		return err
	})
	if err != nil {
		return err
	}
	return i.create("followpress_"+i.number()+"_image.tar", func(w io.Writer) error { return packed(w, files, i.time) })
}

// certificates returns Mozilla's unconditionally trusted roots, because a file cannot express
// conditions.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writes to a buffer do not fail
		}
	}
	return all.Bytes()
}

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonRoot is the user that the image runs as; distroless images use the same number.
const nonRoot = "65532"

// image writes one OCI archive with an image for each Linux target: the program, /tmp, an account, and the certificates
// that servers of object storage are verified with. It has no shell.
func (r *release) image(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	n := 0
	for _, p := range r.built {
		if p.OS != "linux" || (p.name == lite) != r.liteOnly {
			continue
		}
		img, err := r.imageOf(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
		n++
	}
	if n == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "etcd-medic-oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := layout.Write(dir, r.named(index)); err != nil {
		return err
	}
	var members []member
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		members = append(members, member{name: filepath.ToSlash(name), from: path, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	path := filepath.Join(r.out, full+"_"+r.version+"_oci.tar")
	return create(path, func(w io.Writer) error { return writeTar(w, members, r.when) })
}

// named is an index with one image of a name, for all architectures: what loads an archive takes the name from it.
func (r *release) named(images v1.ImageIndex) v1.ImageIndex {
	name := full + ":" + strings.ReplaceAll(r.version, "+", "-") // no tag may have a plus sign
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: images, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": name}},
	})
}

func (r *release) imageOf(p program) (v1.Image, error) {
	content, err := r.rootfs(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: r.when}
	return mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Arch, Created: created, RootFS: config.RootFS,
		History: []v1.History{{Created: created, CreatedBy: "etcd-medic dist"}},
		Config: v1.Config{
			User: nonRoot + ":" + nonRoot, WorkingDir: "/tmp", Entrypoint: []string{"/usr/bin/etcd-medic"},
			Cmd: []string{"--help"},
			Env: []string{"PATH=/usr/bin", "HOME=/tmp", "TMPDIR=/tmp"},
			Labels: map[string]string{
				"org.opencontainers.image.title": "etcd-medic", "org.opencontainers.image.description": summary,
				"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
				"org.opencontainers.image.source": home, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	})
}

// rootfs is the file tree of the image as a tar.
func (r *release) rootfs(p program) ([]byte, error) {
	bin, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	entries := []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"etc/", 0o755, nil},
		{"etc/passwd", 0o644, []byte("nonroot:x:" + nonRoot + ":" + nonRoot + "::/tmp:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("nonroot:x:" + nonRoot + ":\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, rootCertificates()},
		{"tmp/", 0o1777, nil},
		{"usr/", 0o755, nil},
		{"usr/bin/", 0o755, nil},
		{"usr/bin/etcd-medic", 0o755, bin},
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: r.when,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.content); err != nil {
			return nil, err
		}
	}
	// Close writes the padding of the last file and the end of the archive: the bytes are taken after it.
	if err := t.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// rootCertificates are those that Mozilla trusts without a condition, in the form that Go reads from Linux. The pinned
// module decides which they are, so two builds have the same.
func rootCertificates() (out []byte) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}

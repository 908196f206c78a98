package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// member is one file of an archive.
type member struct {
	name string // path inside
	from string // path of the file
	mode int64
}

// texts go with every program.
var texts = []string{"LICENSE", "THIRD_PARTY_NOTICES.txt", "README.md", "CHANGELOG.md"}

// stem is how the artefacts of a program are named.
func (r *release) stem(p program) string {
	return p.name + "_" + r.version + "_" + p.OS + "_" + p.Arch
}

func (r *release) archiveName(p program) string {
	if p.OS == "windows" {
		return r.stem(p) + ".zip"
	}
	return r.stem(p) + ".tar.gz"
}

// archives writes one archive for each program: tar.gz, and zip for Windows.
func (r *release) archives(context.Context) error {
	for _, p := range r.built {
		files, err := r.members(p)
		if err != nil {
			return err
		}
		write := writeTarGzip
		if p.OS == "windows" {
			write = writeZip
		}
		if err := write(filepath.Join(r.out, r.archiveName(p)), files, r.when); err != nil {
			return err
		}
	}
	return nil
}

// members lists what an archive holds: the program, always named etcd-medic, the texts, man pages and completions.
func (r *release) members(p program) ([]member, error) {
	files := []member{{name: p.exe("etcd-medic"), from: p.path, mode: 0o755}}
	for _, t := range texts {
		files = append(files, member{name: t, from: filepath.Join(r.tree, t), mode: 0o644})
	}
	for _, dir := range []string{"completions", "man"} {
		entries, err := os.ReadDir(filepath.Join(r.extras, dir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := dir + "/" + e.Name()
			files = append(files, member{name: name, from: filepath.Join(r.extras, name), mode: 0o644})
		}
	}
	slices.SortFunc(files, func(a, b member) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return files, nil
}

func writeTarGzip(path string, files []member, when time.Time) error {
	return create(path, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := writeTar(z, files, when); err != nil {
			return err
		}
		return z.Close()
	})
}

func writeTar(w io.Writer, files []member, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(b)), ModTime: when, Typeflag: tar.TypeReg,
			Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(b); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(path string, files []member, when time.Time) error {
	return create(path, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			b, err := os.ReadFile(f.from)
			if err != nil {
				return err
			}
			h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
			h.SetMode(os.FileMode(f.mode)) //nolint:gosec // permission bits of this file's own lists
			e, err := z.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := e.Write(b); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// create writes a file and says so when its end could not be written.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// small is a release with stand-ins for programs: everything behind the build is real.
func small(t *testing.T) *release {
	t.Helper()
	dir := t.TempDir()
	r := &release{
		out: filepath.Join(dir, "out"), version: "1.2.3-dev.abc", commit: "abcabcabcabc",
		when: time.Unix(1_700_000_000, 0).UTC(),
		tree: filepath.Join(dir, "tree"), extras: filepath.Join(dir, "extras"),
	}
	put := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range texts {
		put(filepath.Join(r.tree, name), name)
	}
	put(filepath.Join(r.tree, demo), "members")
	put(filepath.Join(r.extras, "man", "etcd-medic.1"), ".TH")
	for _, s := range shells {
		put(filepath.Join(r.extras, "completions", s.file), s.name)
	}
	for _, p := range platforms {
		path := filepath.Join(dir, "bin", p.OS+"-"+p.Arch, full)
		put(path, "program for "+p.String())
		r.built = append(r.built, program{platform: p, name: full, path: path})
	}
	if err := emptyFolder(r.out); err != nil {
		t.Fatal(err)
	}
	return r
}

func writeAll(t *testing.T, r *release) {
	t.Helper()
	for _, step := range []func(context.Context) error{r.archives, r.packages, r.image, r.manifests, r.checksums} {
		if err := step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArtefactsAreEqualOnEachRun(t *testing.T) {
	sums := func() string {
		r := small(t)
		writeAll(t, r)
		b, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first, second := sums(), sums()
	if first != second {
		t.Errorf("two runs differ:\n%s\n%s", first, second)
	}
	for _, want := range []string{
		"etcd-medic_1.2.3-dev.abc_linux_arm64.tar.gz", "etcd-medic_1.2.3-dev.abc_windows_amd64.zip",
		"etcd-medic_1.2.3-dev.abc_linux_amd64.deb",
		"etcd-medic_1.2.3-dev.abc_linux_arm64.rpm", "etcd-medic_1.2.3-dev.abc_oci.tar", "krew.yaml", "etcd-medic.rb",
	} {
		if !strings.Contains(first, "  "+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, first)
		}
	}
}

func TestArchiveHoldsTextsAndPages(t *testing.T) {
	r := small(t)
	writeAll(t, r)
	f, err := os.Open(filepath.Join(r.out, "etcd-medic_1.2.3-dev.abc_linux_amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int64{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(r.when) {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		have[h.Name] = h.Mode
	}
	if have["etcd-medic"] != 0o755 {
		t.Errorf("the program has mode %o", have["etcd-medic"])
	}
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES.txt", "man/etcd-medic.1", "completions/_etcd-medic"} {
		if have[name] != 0o644 {
			t.Errorf("%s has mode %o", name, have[name])
		}
	}
}

func TestManifestsNameEachArchive(t *testing.T) {
	r := small(t)
	writeAll(t, r)
	for name, wants := range map[string][]string{
		"krew.yaml":     {"os: windows", "bin: etcd-medic.exe", "version: v1.2.3-dev.abc", "arch: arm64"},
		"etcd-medic.rb": {"on_macos do", "on_arm do", "on_linux do", "on_intel do", `version "1.2.3-dev.abc"`},
	} {
		b, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !bytes.Contains(b, []byte(want)) {
				t.Errorf("%s lacks %q:\n%s", name, want, b)
			}
		}
		sum, err := digest(filepath.Join(r.out, "etcd-medic_1.2.3-dev.abc_darwin_arm64.tar.gz"))
		if err != nil || !bytes.Contains(b, []byte(sum)) {
			t.Errorf("%s lacks the digest of an archive: %v", name, err)
		}
	}
}

// TestImageHoldsNoMoreThanItNeeds: the program, an account that is not root, a folder for scratch, and certificates
// that verify servers of object storage.
func TestImageHoldsNoMoreThanItNeeds(t *testing.T) {
	r := small(t)
	content, err := r.rootfs(r.built[0])
	if err != nil {
		t.Fatal(err)
	}
	have, modes := map[string][]byte{}, map[string]int64{}
	for in := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if modes[h.Name] = h.Mode; h.Typeflag == tar.TypeReg {
			if have[h.Name], err = io.ReadAll(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(have["etc/ssl/certs/ca-certificates.crt"]) ||
		bytes.Count(have["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) < 50 {
		t.Error("the image has no certificates")
	}
	if len(have) != 4 || modes["usr/bin/etcd-medic"] != 0o755 || modes["tmp/"] != 0o1777 ||
		!strings.HasPrefix(string(have["etc/passwd"]), "nonroot:x:65532:65532:") {
		t.Errorf("files %v, modes %v", slices.Sorted(maps.Keys(have)), modes)
	}
	img, err := r.imageOf(r.built[0])
	if err != nil {
		t.Fatal(err)
	}
	if config, err := img.ConfigFile(); err != nil || config.Config.User != "65532:65532" {
		t.Errorf("the image runs as %+v: %v", config, err)
	}
}

func TestBillOfMaterialsListsModules(t *testing.T) {
	r := small(t)
	// a Go program with build information
	bom, err := r.bom(program{platform: platforms[0], name: lite, path: os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "github.com/goreleaser/nfpm/v2") {
		t.Errorf("modules of the program are missing: %v", names)
	}
	if !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") || len(bom.SerialNumber) != len("urn:uuid:")+36 {
		t.Errorf("serial number %s", bom.SerialNumber)
	}
}

func TestAFullFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := emptyFolder(dir); err == nil {
		t.Error("a folder with a file in it was accepted")
	}
}

// Go's reader takes a tar without its last blocks; tar(1), and what runs containers, refuse it.
func TestLayerOfTheImageIsAWholeTar(t *testing.T) {
	r := small(t)
	content, err := r.rootfs(r.built[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(content)%512 != 0 {
		t.Errorf("%d bytes: the last file is not padded to whole blocks", len(content))
	}
	if !bytes.HasSuffix(content, make([]byte, 1024)) {
		t.Error("the two empty blocks at the end of a tar are missing")
	}
}

// TestArchiveHoldsOneNamedImage: what loads the archive takes the name from it. Below the name are all architectures.
func TestArchiveHoldsOneNamedImage(t *testing.T) {
	r := small(t)
	r.version += "+dirty"
	if err := r.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(r.out, "etcd-medic_"+r.version+"_oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	outer, err := v1.ParseIndexManifest(bytes.NewReader(files["index.json"]))
	if err != nil || len(outer.Manifests) != 1 {
		t.Fatalf("%s: %v", files["index.json"], err)
	}
	const want = "etcd-medic:1.2.3-dev.abc-dirty"
	if got := outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != want {
		t.Errorf("the image is named %q, want %q", got, want)
	}
	inner, err := v1.ParseIndexManifest(bytes.NewReader(files["blobs/sha256/"+outer.Manifests[0].Digest.Hex]))
	if err != nil || len(inner.Manifests) != 2 {
		t.Errorf("below the name: %+v, %v", inner, err)
	}
}

func TestPackagesHoldTheDemo(t *testing.T) {
	r := small(t)
	for _, format := range []string{"deb", "rpm"} {
		contents, err := r.contents(r.built[0], format)
		if err != nil {
			t.Fatal(err)
		}
		if !contents.ContainsDestination("/usr/share/etcd-medic/demo.tar.gz") {
			t.Errorf("%s: no demo in %d files", format, len(contents))
		}
	}
}

package pack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/collect/pack"
	"github.com/etcd-medic/etcd-medic/compare/evidence/archive"
)

func packed(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pack.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, err := w.Add("n/a", 3, at, strings.NewReader("abcdef")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add("n/zeros", 8<<20, at, io.LimitReader(zeros{}, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if f := w.Files(); len(f) != 2 || f[0].SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("%+v", f)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What is packed is unpacked by our own reader, and the bytes depend on nothing but contents and times.
func TestPackedAndUnpacked(t *testing.T) {
	b := packed(t)
	if !bytes.Equal(b, packed(t)) {
		t.Error("the same files give other bytes")
	}
	file := filepath.Join(t.TempDir(), "x.tar.zst")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := archive.Unpack(context.Background(), file, dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "n", "a"))
	if err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if st, err := os.Stat(filepath.Join(dir, "n", "zeros")); err != nil || st.Size() != 8<<20 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestShortFileIsAnError(t *testing.T) {
	w, err := pack.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abandon()
	if _, err := w.Add("a", 4, time.Time{}, strings.NewReader("abc")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

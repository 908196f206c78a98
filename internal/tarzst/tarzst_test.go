package tarzst

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

var wide = Limits{Files: 100, Bytes: 1 << 20}

func write(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Kind: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		e := Entry{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644, Time: time.Unix(1700000000, 5)}
		if err := w.Add(e, strings.NewReader(files[i+1]+"what comes after it")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(b []byte, l Limits) (map[string]string, *Manifest, error) {
	got := map[string]string{}
	m, err := Read(context.Background(), bytes.NewReader(b), l, func(name string, _ int64, r io.Reader) error {
		if strings.HasPrefix(name, "skip") {
			return nil
		}
		c, err := io.ReadAll(r)
		got[name] = string(c)
		return err
	})
	return got, m, err
}

// TestRoundTrip: what was written is read, skipped files are checked too, and two archives of the same files are equal.
func TestRoundTrip(t *testing.T) {
	files := []string{"report.json", "{}", "skip/empty", "", "members/node1/facts.json", strings.Repeat("x", 700_000)}
	b := write(t, files...)
	got, m, err := read(b, wide)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 3 || m.Kind != "test" || got["report.json"] != "{}" ||
		len(got["members/node1/facts.json"]) != 700_000 {
		t.Errorf("read %d files, manifest %+v", len(got), m)
	}
	if f, ok := m.Find("skip/empty"); !ok || f.Size != 0 || f.SHA256[:8] != "e3b0c442" {
		t.Errorf("the empty file: %+v", f)
	}
	if !bytes.Equal(b, write(t, files...)) {
		t.Error("the same files give other bytes")
	}
	h := rows(t, b)[0]
	if h.Mode != 0o644 || h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Uname != "" {
		t.Errorf("header %+v", h)
	}
}

// TestBare: a bare archive ends with the caller's last file, takes any name but one twice, and is the same whether it
// is written with little memory or not by what it holds.
func TestBare(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	pack := func() []byte {
		var out bytes.Buffer
		w, err := NewWriter(&out, Options{Fast: true, Small: true, Bare: true})
		if err != nil {
			t.Fatal(err)
		}
		zeros := io.LimitReader(endless{}, 8<<20)
		if err := w.Add(Entry{Name: "n/zeros", Size: 8 << 20, Time: at}, zeros); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(Entry{Name: ManifestName, Size: 3, Time: at}, strings.NewReader("abcdef")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f := w.Manifest().Files
		if len(f) != 2 || f[1].SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
			t.Errorf("%+v", f)
		}
		return out.Bytes()
	}
	b := pack()
	if !bytes.Equal(b, pack()) {
		t.Error("the same files give other bytes")
	}
	list := rows(t, b)
	if len(list) != 2 || len(list[0].text) != 8<<20 || list[1].text != "abc" || !list[1].ModTime.Equal(at) {
		t.Errorf("%d files, the last %+v", len(list), list[len(list)-1].Header)
	}
}

// TestAbandon gives up an archive in the middle; nothing more is written.
func TestAbandon(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Entry{Name: "a", Size: 4}, strings.NewReader("abc")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	n := out.Len()
	if w.Abandon(); out.Len() != n {
		t.Errorf("%d bytes more were written", out.Len()-n)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestRefusedNames: names that leave the archive's folder, or come twice, are not written; a file that is too short
// neither.
func TestRefusedNames(t *testing.T) {
	for _, name := range []string{"", ".", "/etc/passwd", "a/../../b", "../a", "a//b", "there", ManifestName} {
		w, err := NewWriter(io.Discard, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(Entry{Name: "there"}, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(Entry{Name: name}, strings.NewReader("")); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	w, err := NewWriter(io.Discard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Entry{Name: "short", Size: 10}, strings.NewReader("123")); err == nil {
		t.Error("a file that is shorter than said was written")
	}
}

// TestAltered: whatever differs from the manifest is an error, and so is what goes beyond the limits.
func TestAltered(t *testing.T) {
	b := write(t, "a", "1", "b", "2")
	list := rows(t, b)
	pick := func(change func([]row) []row) []byte { return pack(t, change(append([]row{}, list...))) }
	for name, c := range map[string]struct {
		b    []byte
		l    Limits
		want string
	}{
		"cut":          {b[:len(b)-20], wide, ""},
		"altered":      {pick(func(r []row) []row { r[1].text = "3"; return r }), wide, "b differs from"},
		"one missing":  {pick(func(r []row) []row { return append(r[:1:1], r[2]) }), wide, "b is in the manifest"},
		"one more":     {pick(func(r []row) []row { return append([]row{r[0]}, r...) }), wide, "a differs from"},
		"behind":       {pick(func(r []row) []row { return append(r, r[0]) }), wide, "after the manifest"},
		"no manifest":  {pick(func(r []row) []row { return r[:2] }), wide, "does not end with a manifest"},
		"other format": {pick(func(r []row) []row { r[2].text = `{"format":9}`; return r }), wide, "format 9"},
		"no JSON":      {pick(func(r []row) []row { r[2].text = `nothing`; return r }), wide, "manifest"},
		"a link": {pick(func(r []row) []row { r[0].Typeflag = tar.TypeSymlink; r[0].text = ""; return r }), wide,
			"not a file"},
		"many files": {b, Limits{Files: 1, Bytes: 1 << 20}, "more than 1 files"},
		"many bytes": {b, Limits{Files: 100, Bytes: 1}, "or 1 bytes"},
	} {
		if _, _, err := read(c.b, c.l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type row struct {
	tar.Header
	text string
}

// rows takes an archive apart, the manifest included.
func rows(t *testing.T, b []byte) (out []row) {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row{*h, string(c)})
	}
}

func pack(t *testing.T, list []row) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, r := range list {
		r.Size = int64(len(r.text))
		if err := w.WriteHeader(&r.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, r.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzRead: whatever the bytes are, Read ends with an archive or an error.
func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	w, _ := NewWriter(&out, Options{})
	_ = w.Add(Entry{Name: "a", Size: 3}, strings.NewReader("abc"))
	_ = w.Close()
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, m, err := read(b, wide); err == nil {
			if _, e := json.Marshal(m); e != nil {
				t.Error(e)
			}
		}
	})
}

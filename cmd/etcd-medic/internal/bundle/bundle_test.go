package bundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/bundle"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/dossier/redact"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// private is what the sources of a set hold: keys, and what no bundle may show.
type private struct{ keys, values, secrets []string }

func (p *private) read(ctx context.Context, t *testing.T, m *evidence.Member) {
	t.Helper()
	if m.DB != nil && m.DB.Handle != nil {
		for row, err := range m.DB.Handle.Query(ctx, dumpdb.Query{}) {
			if err == nil && row.Err == nil {
				p.keys, p.values = append(p.keys, string(row.KV.Key)), append(p.values, string(row.KV.Value))
			}
		}
		for _, u := range m.DB.Auth.Users {
			p.secrets = append(p.secrets, string(u.Password))
		}
	}
	if !m.HasWAL() {
		return
	}
	var dec dumplog.Decoder
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		var d *dumplog.DamageError
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := dec.Decode(&e)
		if err != nil {
			continue
		}
		if r.Put != nil {
			p.values = append(p.values, string(r.Put.Value))
		}
		if a := r.Auth; a != nil {
			p.secrets = append(p.secrets, a.Password, a.HashedPassword, a.SimpleToken)
		}
		if r.Txn != nil {
			for _, c := range r.Txn.Compare {
				p.values = append(p.values, string(c.Value))
			}
		}
	}
}

// make makes the bundle of a source, and tells what is in the source.
func makeBundle(t *testing.T, where string, mode redact.Mode) ([]bundle.File, *private) {
	t.Helper()
	p, r := &private{}, redact.New(mode, []byte("a salt"))
	in := &bundle.Input{Keys: string(mode), Created: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)}
	var err error
	in.Dossier, err = dossier.Collect(t.Context(), []evidence.Spec{{Where: where}}, dossier.Options{
		Compare: compare.Options{Version: "test"},
		Then: func(ctx context.Context, members []*evidence.Member, d *dossier.Dossier) error {
			for _, m := range members {
				p.read(ctx, t, m)
				counts, err := bundle.CountLog(ctx, m, r.KeyPrefix)
				if err != nil {
					return err
				}
				in.Logs = append(in.Logs, counts)
			}
			return r.Learn(ctx, members, d)
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(in.Dossier)
	files, err := bundle.Files(in)
	if err != nil {
		t.Fatal(err)
	}
	return files, p
}

// distinct drops what cannot be told from other text: what is short, a plain word, or part of a key.
func distinct(list, keys []string) []string {
	slices.Sort(list)
	all := strings.Join(keys, "\x00")
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool {
		return len(s) < 6 || !strings.ContainsAny(s, "0123456789") || strings.Contains(all, s)
	})
}

// TestNothingPrivate: no value, password, password hash or token of a set is in any file of its bundle, and no key
// where keys are redacted; --keys prefix shows the prefixes; each file of JSON is JSON.
func TestNothingPrivate(t *testing.T) {
	for _, name := range []string{"a-auth-revision-replay", "n-silent-kv-divergence", "s-auth-user-hash-differs",
		"s-superseded-value-altered"} {
		for _, mode := range []redact.Mode{redact.Clear, redact.Hashed, redact.Prefix} {
			files, p := makeBundle(t, evidencetest.Incident(t, name), mode)
			slices.Sort(p.keys)
			p.keys = slices.Compact(p.keys)
			values := append(distinct(p.values, p.keys), distinct(p.secrets, nil)...)
			if len(values) == 0 || len(p.keys) == 0 {
				t.Fatalf("%s: %d values and secrets, %d keys", name, len(values), len(p.keys))
			}
			shown := false // a key by its prefix
			for _, f := range files {
				for _, v := range values {
					if bytes.Contains(f.Content, []byte(v)) {
						t.Fatalf("%s, keys %s: %s holds %q", name, mode, f.Name, v)
					}
				}
				for _, k := range p.keys {
					if mode != redact.Clear && bytes.Contains(f.Content, []byte(k)) {
						t.Fatalf("%s, keys %s: %s holds key %q", name, mode, f.Name, k)
					}
					head := firstParts(k)
					shown = shown || head != "" && bytes.Contains(f.Content, []byte(head+"~"))
				}
				if strings.HasSuffix(f.Name, ".json") && !json.Valid(f.Content) {
					t.Errorf("%s: %s is not JSON", name, f.Name)
				}
			}
			if shown != (mode == redact.Prefix) {
				t.Errorf("%s, keys %s: prefixes are shown: %t", name, mode, shown)
			}
		}
	}
}

// firstParts returns the parts of a key that --keys prefix shows.
func firstParts(key string) string {
	parts := strings.SplitAfter(key, "/")
	n := min(2, len(parts)-1)
	if strings.HasPrefix(key, "/") {
		n = min(3, len(parts)-1)
	}
	return strings.Join(parts[:n], "")
}

// TestOpen: a bundle is read again, an altered one is not, and archives of other things are none.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	files, _ := makeBundle(t, evidencetest.Incident(t, "a-auth-revision-replay"), redact.Hashed)
	put := func(name string, list []bundle.File) string {
		var b bytes.Buffer
		if err := bundle.Write(&b, list); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	whole := put("b.tar.zst", files)
	b, err := bundle.Open(t.Context(), whole)
	if err != nil || b == nil {
		t.Fatal(b, err)
	}
	if b.Info.Created.Format(time.RFC3339) != "2026-03-04T05:06:07Z" || b.Info.Keys != "hashed" ||
		!slices.Equal(b.Info.Sources, []string{"node1", "node2", "node3"}) {
		t.Errorf("%+v", b.Info)
	}
	if !bytes.Contains(b.Screen, []byte("data-divergence")) || len(b.Full) <= len(b.Screen) ||
		!bytes.Contains(b.Screen, []byte("repair plan node1 node2 node3 -o plan.yaml")) {
		t.Errorf("the texts: %s", b.Screen)
	}
	r, err := b.Report()
	if err != nil || r.Verdict.Health != check.Unhealthy || len(r.Findings) == 0 || len(r.Sources) != 3 {
		t.Errorf("%+v %v", r, err)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut.tar.zst": raw[:len(raw)/2], "flipped.tar.zst": flip(raw)} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := bundle.Open(t.Context(), file); err == nil {
			t.Errorf("%s: %v", name, b)
		}
	}
	other := put("other.tar.zst", files[1:])
	for _, file := range []string{other, filepath.Join(dir, "none.tar.zst"), dir} {
		if b, err := bundle.Open(t.Context(), file); b != nil || err != nil {
			t.Errorf("%s: %v %v", file, b, err)
		}
	}
}

func flip(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)-len(b)/3] ^= 0x10
	return b
}

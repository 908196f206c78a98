package redact_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/dossier/redact"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// redacted is the dossier of an incident after redaction, as JSON, and the keys that its sources hold.
func redacted(t *testing.T, name string, mode redact.Mode, salt string) (d *dossier.Dossier, text string,
	keys []string) {
	t.Helper()
	r := redact.New(mode, []byte(salt))
	d, err := dossier.Collect(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, name)}}, dossier.Options{
		Compare: compare.Options{Version: "test"},
		Then: func(ctx context.Context, members []*evidence.Member, d *dossier.Dossier) error {
			for _, m := range members {
				if m.DB == nil || m.DB.Handle == nil {
					continue
				}
				for row, err := range m.DB.Handle.Query(ctx, dumpdb.Query{}) {
					if err == nil {
						keys = append(keys, string(row.KV.Key))
					}
				}
			}
			return r.Learn(ctx, members, d)
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.Apply(d)
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return d, string(raw), slices.Compact(keys)
}

// TestNoKeyIsLeft: no spelling of any key of the incidents stands anywhere in a redacted dossier.
func TestNoKeyIsLeft(t *testing.T) {
	for _, name := range []string{"a-auth-revision-replay", "n-silent-kv-divergence", "f-bbolt-page-corruption",
		"t-guarded-txns-purged-log", "d-wiped-member"} {
		for _, mode := range []redact.Mode{redact.Hashed, redact.Prefix} {
			_, text, keys := redacted(t, name, mode, "salt")
			if len(keys) < 10 {
				t.Fatalf("%s: %d keys", name, len(keys))
			}
			for _, k := range keys {
				if strings.Contains(text, k) {
					at := strings.Index(text, k)
					t.Fatalf("%s, %s: key %q is left: %s", name, mode, k, text[max(0, at-200):at+100])
				}
			}
		}
	}
}

// TestClearKeepsKeys: in clear all stays but digests of values, which take the salt in.
func TestClearKeepsKeys(t *testing.T) {
	d, text, _ := redacted(t, "a-auth-revision-replay", redact.Clear, "salt")
	if !strings.Contains(text, "/app/orders/marker/via-node2-00") || !strings.Contains(text, `/app/orders/base/000`) {
		t.Error("keys are not in the dossier")
	}
	other, _, _ := redacted(t, "a-auth-revision-replay", redact.Clear, "another salt")
	a, b := d.Differences[0].Cells[0].SHA, other.Differences[0].Cells[0].SHA
	if a[0] == b[0] || len(a[0]) != 16 || d.Differences[0].Cells[1].SHA[0] != "=" {
		t.Errorf("digests %s and %s of one value with two salts", a[0], b[0])
	}
}

// TestEqualStaysEqual: what is redacted in columns and in texts is the same for one key, and rows keep their order and
// number.
func TestEqualStaysEqual(t *testing.T) {
	r := redact.New(redact.Hashed, []byte("salt"))
	d, text, _ := redacted(t, "a-auth-revision-replay", redact.Hashed, "salt")
	want := r.Key("/app/orders/marker/via-node2-00")
	if n := strings.Count(text, want); n < 2 {
		t.Errorf("%s stands %d times: %.2000s", want, n, text)
	}
	var keys []string
	key := ""
	for n, rest := range d.Differences[0].Rest {
		key = key[:d.Differences[0].Shared[n]] + rest
		keys = append(keys, key)
	}
	if len(keys) != 50 || keys[0] != r.Key("/app/orders/base/000") {
		t.Errorf("%d rows, the first %q", len(keys), keys[0])
	}
}

// TestKey: what stands for keys in each mode.
func TestKey(t *testing.T) {
	p, h := redact.New(redact.Prefix, []byte("s")), redact.New(redact.Hashed, []byte("s"))
	for key, head := range map[string]string{"/registry/pods/default/web": "/registry/pods/~", "/app/x": "/app/~",
		"/x": "/~", "x": "~", "/app/": "/~", "a/b/c/": "a/b/~"} {
		if got := p.Key(key); !strings.HasPrefix(got, head) || strings.Count(got, "~") != 1 ||
			len(got) != len(head)+10 {
			t.Errorf("by prefix %q is %q, want %s…", key, got, head)
		}
		if got := h.Key(key); strings.Count(got, "/") != strings.Count(key, "/") || strings.ContainsAny(got, "xrpw") {
			t.Errorf("hashed %q is %q", key, got)
		}
	}
	if p.Key("/registry/pods/default/web") == p.Key("/registry/pods/default/app") ||
		h.Key("/a/b") == h.Key("/a/c") || h.Key("/a/b")[:11] != h.Key("/a/c")[:11] || h.Key("//") != "//" {
		t.Error("two keys are one, or one part is two")
	}
	if got := p.KeyPrefix("/registry/pods/"); got != "/registry/pods/" {
		t.Errorf("prefix %q", got)
	}
	if got := p.KeyPrefix("/registry/pods/default/"); strings.Contains(got, "default") {
		t.Errorf("prefix %q", got)
	}
	if got := h.KeyPrefix("/registry/"); strings.Contains(got, "registry") {
		t.Errorf("prefix %q", got)
	}
}

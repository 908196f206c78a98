//go:build browser

package htmlreport

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// hostileNames are names of users, roles, members and sources that try to leave the text that they are.
var hostileNames = []string{
	"<script>window.pwned=1</script>", "</script><script>window.pwned=2</script>",
	"<img src=x onerror=window.pwned=3>", "'\"><svg onload=window.pwned=4>", "${window.pwned=5}{{.}}`",
	"\u202egnp.exe\u202c", "nul\x00bell\x07", "not utf-8 \xff", strings.Repeat("W", 3000),
}

// hostileDossier is that of two databases whose users, roles and members have hostile names and differ.
func hostileDossier(t *testing.T) *dossier.Dossier {
	t.Helper()
	var specs []evidence.Spec
	for i, name := range []string{"<img src=x onerror=window.pwned=6>", "'; alert(1) // \u202e" + strings.Repeat("n", 200)} {
		_, path, _ := strings.Cut(database(t, fmt.Sprint("db", i), fmt.Sprint("value ", i), hostileKeys()), "=")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *bbolt.Tx) error { return hostileRows(tx, i) }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		specs = append(specs, evidence.Spec{Name: name, Where: path})
	}
	d, err := dossier.Collect(t.Context(), specs, dossier.Options{Compare: compare.Options{Version: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func hostileRows(tx *bbolt.Tx, seed int) error {
	for i, name := range hostileNames {
		user := authpb.User{Name: []byte(name), Roles: []string{hostileNames[(i+seed)%len(hostileNames)]}}
		role := authpb.Role{Name: []byte(name), KeyPermission: []*authpb.Permission{{PermType: authpb.READWRITE,
			Key: []byte(name), RangeEnd: fmt.Append(nil, name, seed)}}}
		rawUser, err := user.Marshal()
		if err != nil {
			return err
		}
		rawRole, err := role.Marshal()
		if err != nil {
			return err
		}
		member, err := json.Marshal(map[string]any{"id": i + 1, "name": name, "peerURLs": []string{"http://" + name},
			"clientURLs": []string{"javascript:window.pwned=7"}})
		if err != nil {
			return err
		}
		for bucket, row := range map[string][2][]byte{"authUsers": {[]byte(name), rawUser},
			"authRoles": {[]byte(name), rawRole}, "members": {fmt.Appendf(nil, "%x", i+1), member}} {
			if err := tx.Bucket([]byte(bucket)).Put(row[0], row[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestBrowserHostileNames: names of users, roles, members and sources stay text, in a window as wide as a telephone,
// with all parts of the page open; nothing is asked for, and no part is wider than the window.
func TestBrowserHostileNames(t *testing.T) {
	d := hostileDossier(t)
	for _, dark := range []bool{false, true} {
		b := open(t, d, 320, 640, dark)
		b.tree()
		b.eval(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`)
		b.eval(`document.getElementById("d-open").click()`)
		b.eval(`document.querySelectorAll(".trow").forEach((r) => { if (!r.hasAttribute("aria-expanded")) r.click(); })`)
		if s := b.text(`String(window.pwned) + document.querySelectorAll("main script, main img, main svg, main a[href^='javascript']").length`); s != "undefined0" {
			t.Errorf("a name became markup: %s", s)
		}
		if b.eval(`/[\u202a-\u202e\u2066-\u2069\u0000\u0007]/.test(document.body.textContent)`) == true {
			t.Error("a mark that turns the direction of text, or a control character, is in the document")
		}
		if s := b.text(`document.getElementById("auth").textContent`); !strings.Contains(s, "<img src=x onerror=window.pwned=3>") {
			t.Errorf("the users are not shown as they are: %s", s[:min(len(s), 2000)])
		}
		b.fits()
		b.readable(dark)
		b.quiet()
	}
}

// TestBrowserNarrow: the page of an incident fits a telephone, with all its parts open.
func TestBrowserNarrow(t *testing.T) {
	b := open(t, incident(t, "a-auth-revision-replay"), 320, 640, false)
	b.tree()
	b.eval(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`)
	b.fits()
	b.quiet()
}

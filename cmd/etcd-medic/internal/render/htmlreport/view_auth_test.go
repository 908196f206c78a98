package htmlreport

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestUsersAndRoles: what differs between members is marked, and what is equal is not: auth itself, users that some
// lack, passwords, granted roles and permissions.
func TestUsersAndRoles(t *testing.T) {
	facts := func(name string, on bool, users, roles map[string][]string) evidence.Facts {
		return evidence.Facts{Name: name, Auth: &evidence.AuthFacts{Enabled: on, Users: users, Roles: roles}}
	}
	d := &dossier.Dossier{
		Report: &compare.Report{Sources: []compare.Source{{Name: "n1"}, {Name: "n2"}}, Members: []evidence.Facts{
			facts("n1", true, map[string][]string{"alice": {"reader", "writer"}, "bob": {"reader"}, "carol": {}},
				map[string][]string{"reader": {"READ /a"}, "writer": {"WRITE /a"}}),
			facts("n2", false, map[string][]string{"alice": {"reader"}, "carol": {}},
				map[string][]string{"reader": {"READ /a"}, "writer": {"WRITE /b"}}),
		}},
		Differences: []dossier.Difference{{Bucket: "authUsers", Members: []string{"n1", "n2"}, Shared: []int{0},
			Only: []int{0, 0}, Same: []int{0}, Rest: []string{"carol (password)"},
			Cells: []dossier.Cells{{Text: []string{"hash 1"}}, {Text: []string{"hash 2"}}}}},
	}
	_, html := page(t, d)
	_, html, _ = strings.Cut(html, `<section id="auth">`)
	html, _, _ = strings.Cut(html, `</section>`)
	const off, plain = `<td class="diffcell">`, `<td>`
	for _, want := range []string{`<span class="diffcell">Auth is enabled on n1 and disabled on n2.</span>`,
		plain + "alice</td>" + plain + "equal</td>" + plain + "✓</td>" + off + "only on n1</td>",
		off + "bob (only on n1)</td>" + plain + "equal</td>" + off + "only on n1</td>",
		plain + "carol</td>" + off + "n1 | n2</td>",
		plain + "reader</td>" + plain + "<div>READ /a</div></td>",
		plain + "writer</td>" + off + "<div>n1:</div><div>WRITE /a</div><div>n2:</div><div>WRITE /b</div></td>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the table does not hold %q:\n%s", want, html)
		}
	}
}

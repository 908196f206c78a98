package htmlreport

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
)

// dataOf is the JSON of a page, without the rows that differ.
func dataOf(t *testing.T, html string) (out map[string]any) {
	t.Helper()
	unpack(t, html, "data", &out)
	return out
}

// rowsOf are the rows of a page that differ, by bucket.
func rowsOf(t *testing.T, html string) (out []map[string]any) {
	t.Helper()
	unpack(t, html, "rows", &out)
	return out
}

func unpack(t *testing.T, html, id string, out any) {
	t.Helper()
	_, rest, ok := strings.Cut(html, `<script type="application/json" id="`+id+`">`)
	if !ok {
		t.Fatalf("the page has no %s", id)
	}
	raw, _, _ := strings.Cut(rest, "</script>")
	if strings.ContainsAny(raw, "<>&") {
		t.Errorf("%s holds <, > or &", id)
	}
	if err := json.Unmarshal([]byte(raw), out); err != nil {
		t.Fatal(err)
	}
}

// TestPolicy: the content security policy allows exactly the scripts and styles that the page holds, and nothing from
// elsewhere.
func TestPolicy(t *testing.T) {
	_, html := page(t, incident(t, "a-auth-revision-replay"))
	csp := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]+)"`).FindStringSubmatch(html)
	if csp == nil {
		t.Fatal("the page has no policy")
	}
	policy := strings.NewReplacer("&#39;", "'", "&#43;", "+", "&#34;", `"`).Replace(csp[1])
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") ||
		strings.Contains(policy, "http") {
		t.Errorf("policy %s", policy)
	}
	scripts := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(html, -1)
	styles := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllStringSubmatch(html, -1)
	if len(scripts) != 2 || len(styles) != 1 {
		t.Fatalf("%d scripts and %d styles, want 2 and 1", len(scripts), len(styles))
	}
	for _, s := range append(scripts, styles...) {
		if !strings.Contains(policy, digest(s[1])) {
			t.Errorf("the policy does not name the digest of a script or style of %d bytes", len(s[1]))
		}
	}
	for _, bad := range []string{`(?i)<[a-z][^>]*\sstyle=`, `(?i)<[a-z][^>]*\son[a-z]+=`, `(?i)\b(src|srcset|action)="`,
		`(?i)<(iframe|object|embed|link|img)\b`, `(?i)url\(`, `href="[^#]`} {
		body := html[strings.Index(html, "<body>"):strings.Index(html, `<script type="application/json"`)]
		if at := regexp.MustCompile(bad).FindString(body); at != "" {
			t.Errorf("the document holds %q", at)
		}
	}
}

// TestScriptsWriteText: no script of ours makes markup or code of text.
func TestScriptsWriteText(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|doc\.write|\beval\(|new Function|setTimeout\(["'` + "`" + `]|createContextualFragment|DOMParser|fetch\(|XMLHttpRequest|WebSocket|import\(|https?://`)
	for _, name := range scripts {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bad.FindString(string(b)); at != "" {
			t.Errorf("%s holds %s", name, at)
		}
		for n, line := range strings.Split(string(b), "\n") {
			if strings.Contains(line, "\t") {
				t.Errorf("%s:%d is indented with a tab", name, n+1)
			}
		}
	}
}

// TestStatesOfPagesStandOut: pages in use, free, lost and damaged ones have clearly different colours in both themes.
func TestStatesOfPagesStandOut(t *testing.T) {
	js, err := assets.ReadFile("assets/files.js")
	if err != nil {
		t.Fatal(err)
	}
	css, err := assets.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(js), "const PAGE_COLORS = {")
	list, _, _ := strings.Cut(rest, "}")
	names := map[string]string{"damaged": "red"}
	for _, m := range regexp.MustCompile(`(\w+): "([\w-]+)"`).FindAllStringSubmatch(list, -1) {
		names[m[1]] = m[2]
	}
	if len(names) != 7 {
		t.Fatalf("%d states of pages have a colour, want 7", len(names))
	}
	light, dark, _ := strings.Cut(string(css), `:root[data-theme="dark"]`)
	for theme, block := range map[string]string{"light": light, "dark": dark} {
		shade := func(state string) [3]int {
			m := regexp.MustCompile(`--` + names[state] + `: #(..)(..)(..)`).FindStringSubmatch(block)
			if m == nil {
				t.Fatalf("%s: no colour for %s", theme, state)
			}
			var out [3]int
			for n := range out {
				x, err := strconv.ParseUint(m[n+1], 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				out[n] = int(x)
			}
			return out
		}
		for _, p := range [][2]string{{"free", "reachable"}, {"free", "overflow"}, {"lost", "freelist"},
			{"lost", "reachable"}, {"lost", "overflow"}, {"lost", "free"}, {"damaged", "reachable"},
			{"damaged", "overflow"}, {"damaged", "free"}, {"damaged", "freelist"}} {
			a, b := shade(p[0]), shade(p[1])
			sum := 0
			for n := range a {
				sum += (a[n] - b[n]) * (a[n] - b[n])
			}
			if sum < 70*70 {
				t.Errorf("%s theme: %s pages look like %s pages", theme, p[0], p[1])
			}
		}
	}
}

// TestPageOfIncident: the page answers without scripts what the report says, and its data has what the drawings need.
func TestPageOfIncident(t *testing.T) {
	d := incident(t, "a-auth-revision-replay")
	_, html := page(t, d)
	body, _, found := strings.Cut(html, `<script type="application/json"`)
	if !found {
		t.Fatal("the page holds no data")
	}
	for _, want := range []string{"data-divergence", "auth-revision-replay", "node3", "entry 2/77",
		"29, the log gives 20", "43 entries, the first 103", "Auth operations were applied twice",
		"move-leader 7388dd8c8f94b724",
		"auth-revision-jump", "the auth revision rose by 9", "A04-1", "/app/orders/base/000", "could not be checked",
		"Permission is hereby granted", "voter from"} {
		if !strings.Contains(body, want) {
			t.Errorf("the document does not say %q", want)
		}
	}
	data := dataOf(t, html)
	tl := data["timeline"].(map[string]any)
	if n := len(tl["lanes"].([]any)); n != 3 {
		t.Errorf("%d lanes", n)
	}
	if data["break"].(float64) != 77 {
		t.Errorf("break %v", data["break"])
	}
	if n := len(tl["events"].([]any)); n != 43 {
		t.Errorf("%d events, want 43: node1 lacks all of them, node2 21", n)
	}
	if _, there := data["report"].(map[string]any)["findings"]; there {
		t.Error("the whole report stands in the data too")
	}
	_, again := page(t, d)
	if again != html {
		t.Error("two pages of one dossier differ")
	}
}

// secrets are what the values, passwords and password hashes of the incident begin with; none of them may be in a page.
func TestNoValues(t *testing.T) {
	keys := hostileKeys()
	d := collect(t, database(t, "one", "SECRETVALUE", keys), database(t, "two", "OTHERSECRET", keys))
	_, html := page(t, d)
	if strings.Contains(html, "SECRETVALUE") || strings.Contains(html, "OTHERSECRET") {
		t.Error("the page holds values")
	}
	_, html = page(t, incident(t, "a-auth-revision-replay"))
	for _, secret := range []string{"rootpw", "$2a$"} {
		if strings.Contains(html, secret) {
			t.Errorf("the page holds %s", secret)
		}
	}
}

// TestHostileKeys: keys that are markup, turn the direction of text or are long stay bounded text.
func TestHostileKeys(t *testing.T) {
	keys := hostileKeys()
	d := collect(t, database(t, "one", "x", keys), database(t, "two", "y", keys))
	_, html := page(t, d)
	if len(html) > 1<<20 {
		t.Errorf("%d bytes: a key of 1 MB stands in the page", len(html))
	}
	for _, bad := range []string{"<script>window", "<img", "\u202e", "\u2066", "\x00", "\x1b",
		"</script><script>window"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	dataOf(t, html)
	rowsOf(t, html)
}

// TestPageOfLittle: sources that show hardly anything still make a page.
func TestPageOfLittle(t *testing.T) {
	for _, name := range []string{"o-backup-good", "d-wiped-member", "f-bbolt-page-corruption", "m-healthy-3.6"} {
		d := incident(t, name)
		_, html := page(t, d)
		dataOf(t, html)
		if !strings.Contains(html, "Do now") {
			t.Errorf("%s: no steps", name)
		}
	}
	d := collect(t, database(t, "alone", "x", hostileKeys()))
	if _, html := page(t, d); !strings.Contains(html, "There is one source") {
		t.Error("the page does not say that nothing was compared")
	}
}

// TestSayNoMoreThanIsKnown: one damaged backup is nothing to keep and proves no loss, members that were not compared
// are named, and a number is marked only where the log gives another one.
func TestSayNoMoreThanIsKnown(t *testing.T) {
	for name, want := range map[string]struct{ has, not []string }{
		"o-backup-bit-flip": {has: []string{"Only other members can show what this one lacks."},
			not: []string{`<div class="value">nothing</div>`, `<div class="value">backup.db</div>`}},
		"d-wiped-member": {has: []string{"All buckets are equal at entry 3, the last that all members have applied: key"}},
		"n-silent-kv-divergence": {has: []string{`<dd class="off">1 entry, the first 81</dd>`},
			not: []string{`<dd class="off">150`, `<dd class="off">114`}},
		"a-auth-revision-replay": {has: []string{`<dd class="off">68, the log gives 111</dd>`,
			`<dd class="off">29, the log gives 20</dd>`}},
		"f-bbolt-page-corruption": {has: []string{`<dd class="off">221 can be read, the log gives 244</dd>`, "<td>7 to 7</td>" +
			`<td class="no">damaged</td>`,
			"Not compared:", "<li>Keys of node1: part of bucket key", "all members which could be compared"}},
	} {
		_, html := page(t, incident(t, name))
		for _, s := range want.has {
			if !strings.Contains(html, s) {
				t.Errorf("%s: the page does not say %q", name, s)
			}
		}
		for _, s := range want.not {
			if strings.Contains(html, s) {
				t.Errorf("%s: the page says %q", name, s)
			}
		}
	}
}

// TestTwoWays: the steps by hand are a way of their own; nobody does them after those with this program.
func TestTwoWays(t *testing.T) {
	_, html := page(t, incident(t, "a-auth-revision-replay"))
	do, hand, ok := strings.Cut(html, `<details id="by-hand">`)
	if _, list, _ := strings.Cut(do, `<ol class="do">`); !ok || strings.Contains(list, "systemctl") ||
		!strings.Contains(list, "repair plan") || !strings.Contains(hand, "systemctl stop etcd") {
		t.Error("the steps by hand stand among the others")
	}
}

// TestManyRows: a hundred thousand rows stay below 20 MB.
func TestManyRows(t *testing.T) {
	d := manyRows(t)
	_, html := page(t, d)
	if n := d.Differences[0].Differ; n != 100_000 {
		t.Fatalf("%d rows differ", n)
	}
	if len(html) > 20<<20 {
		t.Errorf("the page has %d bytes", len(html))
	}
	rest := rowsOf(t, html)[0]["rest"].([]any)
	if len(rest) != 100_000 {
		t.Errorf("%d keys are listed", len(rest))
	}
}

// manyRows are two databases whose 100,000 keys all differ.
func manyRows(t *testing.T) *dossier.Dossier {
	t.Helper()
	var keys [][]byte
	for i := range 100_000 {
		keys = append(keys, manyKey(i))
	}
	return collect(t, database(t, "one", "x", keys), database(t, "two", "y", keys))
}

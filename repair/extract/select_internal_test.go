package extract

import (
	"strings"
	"testing"
)

// TestSelectedKeys: keys, prefixes and a range add up; a range ends before To.
func TestSelectedKeys(t *testing.T) {
	b := func(s ...string) (out [][]byte) {
		for _, k := range s {
			out = append(out, []byte(k))
		}
		return out
	}
	for name, c := range map[string]struct {
		s          Selection
		want       string
		everything bool
	}{
		"nothing":          {Selection{}, "a ab b c ca d", true},
		"key":              {Selection{Keys: b("a", "c")}, "a c", false},
		"prefix":           {Selection{Prefixes: b("a", "d")}, "a ab d", false},
		"range":            {Selection{From: []byte("ab"), To: []byte("c")}, "ab b", false},
		"from":             {Selection{From: []byte("c")}, "c ca d", false},
		"to":               {Selection{To: []byte("b")}, "a ab", false},
		"key, prefix, end": {Selection{Keys: b("b"), Prefixes: b("c"), From: []byte("d")}, "b c ca d", false},
		"namespace":        {Selection{Namespace: "n"}, "a ab b c ca d", false},
		"kind":             {Selection{Kind: "n"}, "a ab b c ca d", false},
		"name":             {Selection{Name: "n"}, "a ab b c ca d", false},
	} {
		var got []string
		for _, k := range strings.Fields("a ab b c ca d") {
			if c.s.key([]byte(k)) {
				got = append(got, k)
			}
		}
		if strings.Join(got, " ") != c.want || c.s.Everything() != c.everything {
			t.Errorf("%s: %v, everything %v", name, got, c.s.Everything())
		}
	}
}

// TestSelectedPaths: the key alone says which object a record is of (apiserver, registry/generic/registry/store.go).
func TestSelectedPaths(t *testing.T) {
	paths := strings.Fields("/r /r/pods /r/pods/shop /r/pods/shop/a /r/pods/b/shop /r/namespaces/shop /r/minions/a " +
		"/r/nodes/a /r/apps/deployments/shop/a /r/x/deployments/shop/a /r/services/specs/shop/a " +
		"/r/services/endpoints/shop/a /r/services/shop/a /r/ingress/shop/a /r/ingresses/shop/a /r/policies/a " +
		"/r/other/shop/namespaces")
	for _, c := range []struct{ namespace, kind, name, want string }{
		{"", "Pod", "", "/r/pods/shop /r/pods/shop/a /r/pods/b/shop"},
		{"shop", "Pod", "", "/r/pods/shop/a"},
		{"", "Pod", "a", "/r/pods/shop/a"},
		{"", "", "shop", "/r/pods/shop /r/pods/b/shop /r/namespaces/shop"},
		{"shop", "Namespace", "", "/r/namespaces/shop"},
		{"other", "Namespace", "", ""},
		{"shop", "", "namespaces", "/r/other/shop/namespaces"},
		{"", "Node", "", "/r/minions/a /r/nodes/a"},
		{"", "Deployment", "", "/r/apps/deployments/shop/a /r/x/deployments/shop/a"},
		{"", "Deployment.apps", "", "/r/apps/deployments/shop/a"},
		{"", "deployment.r", "", ""},
		{"", "Pod.any", "a", "/r/pods/shop/a"},
		{"", "Service", "", "/r/services/specs/shop/a"},
		{"", "Endpoints", "", "/r/services/endpoints/shop/a"},
		{"", "Ingress", "", "/r/ingress/shop/a /r/ingresses/shop/a"},
		{"", "Policy", "", "/r/policies/a"},
	} {
		s := Selection{Namespace: c.namespace, Kind: c.kind, Name: c.name}
		var got []string
		for _, p := range paths {
			if s.path([]byte(p)) {
				got = append(got, p)
			}
		}
		if have := strings.Join(got, " "); have != c.want {
			t.Errorf("%+v: %s", c, have)
		}
	}
}

// TestPluralOf follows apimachinery (pkg/api/meta/restmapper.go) and the names of its own exceptions.
func TestPluralOf(t *testing.T) {
	for kind, want := range map[string]string{"pod": "pods", "ingress": "ingresses", "prefix": "prefixes",
		"batch": "batches", "mesh": "meshes", "policy": "policies", "gateway": "gateways", "y": "ys"} {
		if got := pluralOf(kind); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if groupOf("v1") != "" || groupOf("apps/v1") != "apps" {
		t.Error("groups of API versions")
	}
}

// TestFileName: no byte of a name leads out of the folder, hides the file or fills the name.
func TestFileName(t *testing.T) {
	long := strings.Repeat("a", 199)
	for name, want := range map[string]string{"": "_", "azAZ09-_.x": "azAZ09-_.x", ".hidden": "%2Ehidden",
		"..": "%2E.", "a/b": "a%2Fb", "`a{": "%60a%7B", "@A[": "%40A%5B", "/0:": "%2F0%3A", "\x00\xff": "%00%FF",
		long + "bc": long + "b", long + "/c": long + "%2F"} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

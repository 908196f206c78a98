package extract

import (
	"bytes"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// Selection says which keys are selected. Keys, Prefixes and ranges are combined; none of them means all keys. The
// Kubernetes conditions restrict the result.
type Selection struct {
	Keys, Prefixes [][]byte
	// From and To are a range from From up to but not including To; a nil To is the end of the key space.
	From, To []byte
	// Namespace, Kind and Name are those of a Kubernetes object; empty means any. Kind may have a group, as in
	// Deployment.apps, and is compared without regard to case.
	Namespace, Kind, Name string
}

// Everything reports whether no condition is set.
func (s *Selection) Everything() bool {
	return len(s.Keys) == 0 && len(s.Prefixes) == 0 && s.From == nil && s.To == nil && !s.kube()
}

func (s *Selection) kube() bool { return s.Namespace != "" || s.Kind != "" || s.Name != "" }

// key reports whether a key is selected by its name.
func (s *Selection) key(k []byte) bool {
	if len(s.Keys) == 0 && len(s.Prefixes) == 0 && s.From == nil && s.To == nil {
		return true
	}
	for _, want := range s.Keys {
		if bytes.Equal(k, want) {
			return true
		}
	}
	for _, p := range s.Prefixes {
		if bytes.HasPrefix(k, p) {
			return true
		}
	}
	if s.From == nil && s.To == nil {
		return false
	}
	return bytes.Compare(k, s.From) >= 0 && (s.To == nil || bytes.Compare(k, s.To) < 0)
}

// object reports whether a record belongs to the selected object, according to its value. If the value does not show it
// (a tombstone, an encrypted value), the key decides.
func (s *Selection) object(k, value []byte) bool {
	if !s.kube() {
		return true
	}
	o, ok := dumpdb.ParseKube(value)
	if !ok || o.Kind == "" {
		return s.path(k)
	}
	kind, group, _ := strings.Cut(s.Kind, ".")
	switch {
	case kind != "" && !strings.EqualFold(kind, o.Kind):
		return false
	case group != "" && group != groupOf(o.APIVersion):
		return false
	}
	if s.Name != "" && s.Name != o.Name {
		return false
	}
	// A namespace is itself an object without a namespace, and must exist before its objects.
	return s.Namespace == "" || s.Namespace == o.Namespace || o.Kind == "Namespace" && o.APIVersion == "v1" &&
		o.Name == s.Namespace
}

func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// path decides by the key that an apiserver gives an object: PREFIX/[GROUP/]RESOURCE/[NAMESPACE/]NAME (apiserver
// pkg/registry/generic/registry/store.go).
func (s *Selection) path(k []byte) bool {
	parts := strings.Split(strings.Trim(string(k), "/"), "/")
	if len(parts) < 3 {
		return false
	}
	at := len(parts) - 1
	if s.Name != "" && parts[at] != s.Name {
		return false
	}
	itself := len(parts) == 3 && parts[1] == "namespaces" && parts[2] == s.Namespace
	if s.Namespace != "" && !itself && (len(parts) < 4 || parts[at-1] != s.Namespace) {
		return false
	}
	if s.Kind == "" {
		return true
	}
	kind, group, _ := strings.Cut(strings.ToLower(s.Kind), ".")
	for i := 1; i < at; i++ {
		if resourceOf(kind, parts, i) && (group == "" || i == 1 || parts[i-1] == group) {
			return true
		}
	}
	return false
}

// storedAs are the kinds whose storage prefix is not their plural.
var storedAs = map[string][]string{
	"node": {"minions"}, "replicationcontroller": {"controllers"}, "service": {"services", "specs"},
	"endpoints": {"services", "endpoints"},
	"ingress":   {"ingress"}, "podsecuritypolicy": {"podsecuritypolicy"},
}

// resourceOf reports whether the parts at i are the storage prefix of a kind.
func resourceOf(kind string, parts []string, i int) bool {
	want, special := storedAs[kind]
	if !special {
		want = []string{pluralOf(kind)}
	}
	for j, w := range want {
		if i+j >= len(parts) || parts[i+j] != w {
			return special && parts[i] == pluralOf(kind) && kind != "service"
		}
	}
	return true
}

// pluralOf is the name of a Kubernetes kind in the paths of its keys.
func pluralOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"),
		strings.HasSuffix(kind, "sh"):
		return kind + "es"
	case strings.HasSuffix(kind, "y") && len(kind) > 1 && !strings.ContainsRune("aeiou", rune(kind[len(kind)-2])):
		return kind[:len(kind)-1] + "ies"
	}
	return kind + "s"
}

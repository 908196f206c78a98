package compare

import (
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// maxObjects bounds the keys whose objects are looked for.
const maxObjects = 10_000

// registries are what keys of Kubernetes begin with: an apiserver's, and those of OpenShift. No other database is read
// for names.
var registries = []string{"/registry/", "/kubernetes.io/", "/openshift.io/"}

// nameObjects adds kind, namespace, name and manager of Kubernetes objects to the keys of findings and of the timeline.
// It never adds content.
func (c *collected) nameObjects(r *Report) {
	want := map[string]*evidence.Object{}
	add := func(key string) {
		if len(want) < maxObjects && slices.ContainsFunc(registries,
			func(p string) bool { return len(key) > len(p) && key[:len(p)] == p }) {
			want[key] = nil
		}
	}
	for i := range r.Findings {
		for _, e := range r.Findings[i].Evidence {
			if e.Bucket == "" || e.Bucket == "key" {
				add(string(e.Key))
			}
		}
	}
	for i := range r.Timeline {
		for _, k := range c.keysOf(&r.Timeline[i]) {
			add(k)
		}
	}
	if len(want) == 0 {
		return
	}
	read := map[string]bool{} // the records of members that were read
	for _, m := range c.in.Members {
		if m.HasDB() && (m.DB.RecordsHash == "" || !read[m.DB.RecordsHash]) {
			c.findObjects(m, want)
			read[m.DB.RecordsHash] = true
		}
	}
	for i := range r.Findings {
		for j := range r.Findings[i].Evidence {
			e := &r.Findings[i].Evidence[j]
			if e.Bucket == "" || e.Bucket == "key" {
				e.Object = want[string(e.Key)]
			}
		}
	}
	for i := range r.Timeline {
		for _, k := range c.keysOf(&r.Timeline[i]) {
			if o := want[k]; o != nil {
				r.Timeline[i].Objects = append(r.Timeline[i].Objects, *o)
			}
		}
	}
}

// findObjects reads a member's records once, for the keys that no member before had. The newest record of a key that
// names an object counts; damage leaves keys without a name.
func (c *collected) findObjects(m *evidence.Member, want map[string]*evidence.Object) {
	missing := map[string]struct{}{}
	for k, o := range want {
		if o == nil {
			missing[k] = struct{}{}
		}
	}
	found, err := dumpdb.Newest(c.in.Context(), m.DB.Handle, missing,
		func(r *dumpdb.Revision) (*evidence.Object, bool) {
			k, ok := dumpdb.ParseKube(r.KV.Value)
			return evidence.ObjectOf(&k), ok
		})
	if err == nil {
		maps.Copy(want, found)
	}
}

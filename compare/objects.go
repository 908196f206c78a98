package compare

import (
	"bytes"
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
	for _, m := range c.in.Members {
		c.findObjects(m, want)
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
	missing := map[string]bool{}
	for k, o := range want {
		missing[k] = o == nil
	}
	if !m.HasDB() || !slices.Contains(valuesOf(missing), true) {
		return
	}
	for rev, err := range m.DB.Handle.Revisions() {
		if err != nil || rev.Err != nil || rev.Tombstone {
			continue
		}
		if !missing[string(rev.KV.Key)] {
			continue
		}
		if k, ok := dumpdb.ParseKube(rev.KV.Value); ok {
			want[string(bytes.Clone(rev.KV.Key))] = evidence.ObjectOf(&k)
		}
		if c.in.Ctx.Err() != nil {
			return
		}
	}
}

func valuesOf(m map[string]bool) []bool {
	var out []bool
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

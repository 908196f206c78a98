package dumpdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// facts puts what this package reads into the words of truth.json.
func facts(t *testing.T, db *DB) map[string]any {
	t.Helper()
	ctx := context.Background()
	m, err := db.MetaBucket()
	fatal(t, err)
	a, err := db.Auth()
	fatal(t, err)
	members, err := db.Members()
	fatal(t, err)
	removed, err := db.RemovedMembers()
	fatal(t, err)
	c, err := db.Cluster()
	fatal(t, err)
	leases, err := db.Leases()
	fatal(t, err)
	alarms, err := db.Alarms()
	fatal(t, err)
	st, err := db.KVStats(ctx)
	fatal(t, err)
	f := map[string]any{
		"consistent_index": m.ConsistentIndex, "term": m.Term, "storage_version": orNil(m.StorageVersion),
		"scheduled_compact_rev": mainOf(m.ScheduledCompact), "finished_compact_rev": mainOf(m.FinishedCompact),
		"conf_state":   confFacts(m.ConfState),
		"auth_enabled": a.Enabled, "auth_revision": a.Revision, "users": map[string]any{}, "roles": map[string]any{},
		"members":         map[string]any{},
		"members_removed": removed, "cluster_version": orNil(c.Version),
		"leases": each(leases, func(l Lease) any { return l.ID.String() }),
		"alarms": each(alarms, func(a Alarm) any {
			return a.MemberID.String() + ":" + map[int32]string{1: "NOSPACE", 2: "CORRUPT"}[a.Type]
		}),
		"revision": st.LastRev.Main, "oldest_revision": st.FirstRev.Main, "records": st.Revisions,
		"tombstones": st.Tombstones, "live_keys": st.LiveKeys,
		"file_size": db.Size(),
	}
	for _, u := range a.Users {
		f["users"].(map[string]any)[u.Name] = u.Roles
	}
	for _, r := range a.Roles {
		f["roles"].(map[string]any)[r.Name] = each(r.Perms,
			func(p Permission) any { return fmt.Sprintf("%s:%s:%s", p.TypeName(), p.Key, p.RangeEnd) })
	}
	for _, m := range members {
		f["members"].(map[string]any)[m.ID.String()] = memberFacts(m)
	}
	return f
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func mainOf(r *Rev) any {
	if r == nil {
		return nil
	}
	return r.Main
}

func confFacts(c *ConfState) any {
	if c == nil {
		return nil
	}
	return map[string]any{"voters": byText(c.Voters), "learners": byText(c.Learners)}
}

// byText sorts as truth.json does.
func byText(in []ID) []string {
	out := []string{}
	for _, id := range in {
		out = append(out, id.String())
	}
	slices.Sort(out)
	return out
}

func memberFacts(m Member) map[string]any {
	f := map[string]any{"peerURLs": m.PeerURLs}
	if m.Name != "" {
		f["name"] = m.Name
	}
	if m.ClientURLs != nil {
		f["clientURLs"] = m.ClientURLs
	}
	if m.IsLearner {
		f["isLearner"] = true
	}
	return f
}

// plain is a value as JSON sees it, with null for everything empty.
func plain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	fatal(t, err)
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var out any
	fatal(t, d.Decode(&out))
	return prune(out)
}

func prune(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = prune(x[k])
		}
		if len(x) == 0 {
			return nil
		}
	case []any:
		for i := range x {
			x[i] = prune(x[i])
		}
		if len(x) == 0 {
			return nil
		}
	}
	return v
}

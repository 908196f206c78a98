package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var authStructure = described(Check{
	ID:    A05,
	Needs: NeedDB,
	Run:   runAuthStructure,
})

func runAuthStructure(in *Input) Result {
	var fs []Finding
	unread := ""
	for _, m := range in.Members {
		if !m.HasDB() || m.Source.Kind == evidence.KindBackup {
			continue
		}
		if authDamaged(m) {
			unread = m.Label() + ": part of the auth buckets cannot be read"
			continue
		}
		if f := authStructureFinding(in, m); len(f.Evidence) > 0 {
			f.Title = fmt.Sprintf("%s: the auth buckets contradict each other in %s", m.Label(),
				plural.Of(len(f.Evidence)+f.More, "place", "places"))
			fs = append(fs, f)
		}
	}
	return outcome(fs, unread)
}

// authDamaged reports whether damage may hide rows of the auth buckets. A missing row then proves nothing.
func authDamaged(m *evidence.Member) bool {
	return slices.ContainsFunc(m.DB.Damage, func(d *dumpdb.DamageError) bool {
		return d.Bucket == "" || strings.HasPrefix(d.Bucket, "auth")
	})
}

// unknownField is what is observed of a row with a field that this tool does not know.
const unknownField = "field %d, which no release up to 3.8 writes"

func authStructureFinding(in *Input, m *evidence.Member) Finding {
	a := &m.DB.Auth
	f := Finding{Kind: KindAuthBucketsContradict, Severity: Error, Class: ClassDBDamage, Members: []string{m.Label()},
		Explanation: "no server writes this: rows were lost with damaged pages, put together from two files, or edited"}
	bad := func(bucket, key, field, observed, expected string) {
		in.add(&f, func() Evidence {
			return Evidence{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(key), Field: field,
				Observed: observed, Expected: expected, Show: showDB(m, bucket)}
		})
	}
	roles := map[string]bool{"root": true}
	for _, r := range a.Roles {
		roles[r.Name] = true
		if r.Unknown != 0 {
			bad("authRoles", r.Name, "fields", fmt.Sprintf(unknownField, r.Unknown), "only the fields of authpb.Role")
		}
	}
	root := false
	for _, u := range a.Users {
		root = root || u.Name == "root" && slices.Contains(u.Roles, "root")
		if u.Unknown != 0 {
			bad("authUsers", u.Name, "fields", fmt.Sprintf(unknownField, u.Unknown), "only the fields of authpb.User")
		}
		if !u.HasOptions && len(u.Password) == 0 {
			bad("authUsers", u.Name, "password", "no hash, and no option", "a hash, as up to 3.3, or an option")
		}
		if !slices.IsSorted(u.Roles) {
			bad("authUsers", u.Name, "order of roles", strings.Join(u.Roles, " "), "ascending order")
		}
		for _, r := range u.Roles {
			if !roles[r] {
				bad("authUsers", u.Name, "role", r+", which does not exist", "a role of bucket authRoles")
			}
		}
	}
	if a.Enabled && !root {
		bad("auth", "authEnabled", "root", "auth is enabled without a user root that has role root",
			"user root with role root")
	}
	if want := expectedAuthRevision(a); want != "" {
		bad("auth", "authRevision", "authRevision", fmt.Sprint(a.Revision), want)
	}
	return f
}

// expectedAuthRevision says what the auth revision must at least be if it is too low for the users, else "". Each
// change of a user raises it, with auth on or off: adding one with options is a change, and so is granting a role.
func expectedAuthRevision(a *dumpdb.Auth) string {
	raised := uint64(0)
	for _, u := range a.Users {
		if u.HasOptions {
			raised += 1 + uint64(len(u.Roles))
		}
	}
	switch used := a.Enabled || len(a.Users) > 0; {
	case used && (!a.HasRevision || a.Revision == 0):
		return "1 or more"
	case raised > 0 && a.Revision <= raised:
		return fmt.Sprintf("more than %d, the number of users and of the roles that they were granted", raised)
	}
	return ""
}

package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
)

var authStructureBroken = Cause{
	ID: "auth-structure-broken", Title: "users, roles and the auth state contradict each other",
	Doc: `A user has a role that does not exist, auth is enabled without a root that can administer it, or users are there without an auth revision.
The server keeps all of that from happening: rows were lost with damaged pages, the file was put together from two, or it was edited. The
proof is of the contradiction, not of what caused it.`,
	LookAlikes: "role root without a row of its own, which is normal; permissions over empty ranges, which were " +
		"accepted before 3.4.25 and 3.5.8",
	Recovery: "repair it through the API as root, or reseed the member from one whose buckets agree",
	Loss:     "access control may let through or refuse what it should not",
	Match: func(in *Input) *Match {
		m := aside(in, "A05", "the rows that are missing, read from another copy of this database",
			func(check.Finding) bool { return true })
		if m == nil {
			m = aside(in, "B05", "the rows that are missing, read from another copy of this backup",
				func(f check.Finding) bool { return f.Severity != check.Warning })
		}
		if m != nil {
			m.Aside = false
		}
		return m
	},
}

var authSecretsInWAL = Cause{
	ID: "auth-secrets-in-wal", Title: "passwords of users stand in clear in the log",
	Doc: `Up to 3.4 the server hashes a password when it applies the entry, so the entry carries it in clear; logins did too in some releases. The
segments keep it until they are purged, also after an upgrade to 3.5, which stores hashes only.`,
	Affected: []string{"new users and changed passwords: up to 3.4.45",
		"logins: 3.4.0 - 3.4.9, 3.3.22 and older, all of 3.2"},
	FixedIn:    []string{"3.5.0"},
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/11943"},
	LookAlikes: "none",
	Recovery:   "let no copy of these data dirs leave the house, change the passwords, upgrade",
	Loss:       "confidentiality only",
	Match: func(in *Input) *Match {
		return aside(in, "A06", "entries whose password field is empty", func(check.Finding) bool { return true })
	},
}

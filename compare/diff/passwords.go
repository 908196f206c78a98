package diff

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// Password is a user whose password hashes differ between members that can be compared.
type Password struct {
	User string
	// Wrong are the members whose hash cannot be the right one, and Why; the others may be as wrong.
	Wrong []int
	Why   string
	// Legal is true when members may have made their hashes with salts of their own, as they do for requests of
	// proposers up to 3.4.
	Legal bool
}

// bcrypt hashes are "$2a$", the cost, "$", and 22 characters of salt and 31 of digest in base64 with ./ for +/.
const (
	bcryptLen  = 60
	bcryptSalt = 29
)

func saltOf(hash []byte) string {
	if len(hash) < bcryptSalt {
		return ""
	}
	return string(hash[:bcryptSalt])
}

// wellFormed tells whether the bytes can be a hash that a server made.
func wellFormed(hash []byte) bool {
	if len(hash) != bcryptLen || !bytes.HasPrefix(hash, []byte("$2")) || hash[3] != '$' || hash[6] != '$' {
		return false
	}
	return !slices.ContainsFunc(hash[7:], func(c byte) bool {
		return !(c == '.' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
	})
}

// passwords compares the password hashes of users. From 3.5 on the hash is in the request, so all members store the
// same. A request of a proposer up to 3.4 carries the password in clear, and each member makes a hash with a salt of
// its own.
func (r *Result) passwords(b *Bucket, rp *replay.Result, o Options) {
	take := r.whole(b.Name)
	if len(take) < 2 {
		return
	}
	hashes := map[string]map[int][]byte{}
	for _, i := range take {
		for _, u := range r.Members[i].DB.Auth.Users {
			if hashes[u.Name] == nil {
				hashes[u.Name] = map[int][]byte{}
			}
			hashes[u.Name][i] = u.Password
		}
	}
	table := r.lineUp(take, passwordRows)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		row := Row{Key: []byte(name), Kind: PasswordRow, Cells: table[name]}
		have := holders(&row, take)
		if len(have) < 2 || allSame(row.Cells, have) ||
			!r.split(b.Name, &row, have, rp, map[int]string{}, map[[2]int]bool{}) {
			continue
		}
		row.Out = append(row.Out, without(take, have)...)
		r.password(b, row, hashes[name], without(take, row.Out), rp, o)
	}
}

func passwordRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, u := range m.DB.Auth.Users {
		out[u.Name] = "no password hash"
		if len(u.Password) > 0 {
			out[u.Name] = "password hash with digest " + m.Digest(u.Password)
		}
	}
	return out
}

// password judges the differing hashes of one user.
func (r *Result) password(b *Bucket, row Row, hashes map[int][]byte, at []int, rp *replay.Result, o Options) {
	p := Password{User: string(row.Key)}
	set, known := r.passwordOrigin(p.User, hashes, at, rp)
	switch {
	case known && set.Hash != nil:
		for _, i := range at {
			if !bytes.Equal(hashes[i], set.Hash) {
				p.Wrong = append(p.Wrong, i)
			}
		}
		p.Why = fmt.Sprintf("entry %d gave the user another hash", set.Index)
	case slices.ContainsFunc(at, func(i int) bool { return len(hashes[i]) > 0 && !wellFormed(hashes[i]) }):
		for _, i := range at {
			if len(hashes[i]) > 0 && !wellFormed(hashes[i]) {
				p.Wrong = append(p.Wrong, i)
			}
		}
		p.Why = "it is not a hash that a server makes"
	case sameSalt(hashes, at):
		p.Why = "the hashes have one salt and differ, which no server makes of one password"
	default:
		p.Legal = true
	}
	r.Passwords = append(r.Passwords, p)
	if p.Legal {
		return
	}
	b.Differ++
	if len(b.Rows) < o.MaxRows {
		b.Rows = append(b.Rows, row)
	}
	equal := false
	b.Equal, b.Reason = &equal, ""
}

// passwordOrigin is the entry that the user's password comes from, false when the log does not tell it. A new user that
// is there already is refused, so an entry counts when some member holds its hash, or when it must have succeeded.
func (r *Result) passwordOrigin(user string, hashes map[int][]byte, at []int, rp *replay.Result) (replay.PasswordSet,
	bool) {
	if rp == nil || rp.Survey == nil {
		return replay.PasswordSet{}, false
	}
	applied := r.Members[at[0]].AppliedMin
	for _, i := range at {
		applied = min(applied, r.Members[i].AppliedMin)
	}
	for _, set := range slices.Backward(rp.Survey.Passwords(user, applied)) {
		held := slices.ContainsFunc(at, func(i int) bool { return set.Hash != nil && bytes.Equal(hashes[i], set.Hash) })
		switch {
		case held, set.ByRoot && !set.Add:
			return set, true
		case set.Hash == nil:
			return set, false // in clear: it may be the one
		}
	}
	return replay.PasswordSet{}, false
}

// sameSalt tells whether two different hashes have one salt.
func sameSalt(hashes map[int][]byte, at []int) bool {
	for n, i := range at {
		for _, j := range at[n+1:] {
			if s := saltOf(hashes[i]); s != "" && s == saltOf(hashes[j]) && !bytes.Equal(hashes[i], hashes[j]) {
				return true
			}
		}
	}
	return false
}

package diff

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// Password is a user whose password hashes differ between members that can be compared.
type Password struct {
	User string
	// Wrong are the members whose hash cannot be right, and Why is the reason. The others may be wrong as well.
	Wrong []int
	Why   string
	// Legal is true if each member may have added its own salt, as for requests of proposers up to 3.4.
	Legal bool
}

// bcrypt hashes are "$2a$", the cost, "$", and 22 characters of salt and 31 of digest in base64 with ./ for +/.
const (
	bcryptLen  = 60
	bcryptHead = 7
	// alikeFrom is the number of equal characters from which two hashes are one that was altered. Of 53 random
	// characters of base64, 16 agree in one of 10^15 pairs.
	alikeFrom = 16
)

// wellFormed reports whether the bytes can be a hash made by a server.
func wellFormed(hash []byte) bool {
	if len(hash) != bcryptLen || !bytes.HasPrefix(hash, []byte("$2")) || hash[3] != '$' || hash[6] != '$' {
		return false
	}
	return !slices.ContainsFunc(hash[7:], func(c byte) bool {
		return !(c == '.' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z')
	})
}

// passwords compares the password hashes of users. Since 3.5 the hash is in the request, so all members store the same.
// A request of a proposer up to 3.4 has the password in plain text, and each member adds its own salt.
func (r *rowComparer) passwords(b *Bucket) {
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
			!r.split(b.Name, &row, have, map[int]string{}, map[[2]int]bool{}) {
			continue
		}
		row.Out = append(row.Out, without(take, have)...)
		r.password(b, row, hashes[name], without(take, row.Out))
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
func (r *rowComparer) password(b *Bucket, row Row, hashes map[int][]byte, at []int) {
	p := Password{User: string(row.Key)}
	set, known := r.passwordOrigin(p.User, hashes, at)
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
		p.Why = "a server does not create such a hash"
	case alike(hashes, at):
		p.Why = "the hashes agree in most of salt or digest but differ, which servers that hash one password never do"
	default:
		p.Legal = true
	}
	r.Passwords = append(r.Passwords, p)
	if p.Legal {
		return
	}
	b.Differ++
	if len(b.Rows) < r.o.MaxRows {
		b.Rows = append(b.Rows, row)
	}
	b.Equal, b.Reason = release.No, ""
}

// passwordOrigin returns the entry that set the user's password, false if the log does not show it. Adding an existing
// user is refused. So an entry counts only if a member has its hash, or if it must have succeeded.
func (r *rowComparer) passwordOrigin(user string, hashes map[int][]byte, at []int) (replay.PasswordSet, bool) {
	if r.rp == nil || r.rp.Survey == nil {
		return replay.PasswordSet{}, false
	}
	applied := r.Members[at[0]].AppliedMin
	for _, i := range at {
		applied = min(applied, r.Members[i].AppliedMin)
	}
	for _, set := range slices.Backward(r.rp.Survey.Passwords(user, applied)) {
		if !r.rp.Covers(set.Index, applied) {
			return replay.PasswordSet{}, false
		}
		held := slices.ContainsFunc(at, func(i int) bool { return set.Hash != nil && bytes.Equal(hashes[i], set.Hash) })
		switch {
		case held, set.ByRoot && !set.Add:
			return set, true
		case set.Hash == nil:
			return set, false // plain text: it may be this entry
		}
	}
	return replay.PasswordSet{}, false
}

// alike reports whether two different hashes agree in so many characters that one of them was made of the other. Two
// servers that hash one password choose different salts, and get digests that share nothing. With the same salt they
// get the same digest.
func alike(hashes map[int][]byte, at []int) bool {
	for n, i := range at {
		for _, j := range at[n+1:] {
			if !bytes.Equal(hashes[i], hashes[j]) && agreeing(hashes[i], hashes[j]) >= alikeFrom {
				return true
			}
		}
	}
	return false
}

// agreeing counts the characters of salt and digest that two hashes have in common.
func agreeing(a, b []byte) (n int) {
	for i := bcryptHead; i < min(len(a), len(b)); i++ {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

package replay

import (
	"bytes"
	"slices"
	"sort"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	permRead  = 0
	permWrite = 1
	permBoth  = 2
)

// check is isOpPermitted of server/auth/store.go, in its order.
func (s *authState) check(h dumplog.Header, key, end []byte, write bool) Reason {
	if !s.enabled {
		return ReasonNone
	}
	if h.AuthRevision == 0 {
		return ReasonUserEmpty
	}
	if h.AuthRevision < s.revision {
		return ReasonOldAuth
	}
	u := s.users[h.Username]
	if u == nil {
		return ReasonPermission
	}
	if slices.Contains(u.roles, rootName) || s.covered(u, key, end, write) {
		return ReasonNone
	}
	return ReasonPermission
}

// covered tells whether the union of the user's permissions of the wanted type covers [key, end).
func (s *authState) covered(u *user, key, end []byte, write bool) bool {
	var spans [][2]string
	for _, role := range u.roles {
		for _, p := range s.roles[role] {
			if p.typ == permBoth || write && p.typ == permWrite || !write && p.typ == permRead {
				spans = append(spans, span(p.key, p.end))
			}
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i][0] < spans[j][0] })
	want := span(string(key), string(end))
	at := want[0]
	for _, sp := range spans {
		if sp[0] > at {
			break
		}
		if sp[1] == openEnd || sp[1] > at && at != openEnd {
			at = sp[1]
		}
		if at == openEnd || want[1] != openEnd && at >= want[1] {
			return true
		}
	}
	return false
}

// openEnd stands for "to the end of the key space"; as a span start it never occurs because keys are not empty there.
const openEnd = ""

func span(key, end string) [2]string {
	switch {
	case end == "":
		return [2]string{key, key + "\x00"}
	case end == "\x00":
		return [2]string{key, openEnd}
	}
	return [2]string{key, end}
}

// inRange tells whether key lies in the range the way etcd reads the pair.
func inRange(key string, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return key == string(from)
	case len(end) == 1 && end[0] == 0:
		return key >= string(from)
	}
	return key >= string(from) && bytes.Compare([]byte(key), end) < 0
}

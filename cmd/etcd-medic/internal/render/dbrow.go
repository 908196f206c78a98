package render

import (
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// DBRow is a row of a bucket without a decoder.
type DBRow struct {
	*dumpdb.Row
	// KeysOnly omits the value.
	KeysOnly bool
}

// Kind is "row".
func (DBRow) Kind() string { return "row" }

// Line shows key and value.
func (r DBRow) Line(dst []byte, o Options) []byte {
	return appendDBPlace(textLine(append(dst, "row"...), o, r.content), r.Place)
}

// Fields are key and value as stored.
func (r DBRow) Fields(f Fields) {
	r.content(f)
	writePlace(f, r.Place)
}

func (r DBRow) content(f Fields) {
	f.Bytes("key", r.Key)
	if !r.KeysOnly {
		f.Raw("val", r.Value)
	}
	flag(f, "bucket", r.Bucket)
}

// DBFact is a named fact of a small bucket, such as meta/consistent_index.
type DBFact struct {
	Bucket, Name string
	// Num is shown if Text is empty.
	Text string
	Num  uint64
}

// Kind is the bucket's name.
func (d DBFact) Kind() string { return d.Bucket }

// Line is bucket/name = value.
func (d DBFact) Line(dst []byte, o Options) []byte {
	dst = appendWord(append(appendWord(dst, d.Bucket), '/'), d.Name)
	dst = append(dst, " = "...)
	if d.Text != "" {
		return appendWord(dst, d.Text)
	}
	return strconv.AppendUint(dst, d.Num, 10)
}

// Fields are name and value.
func (d DBFact) Fields(f Fields) {
	f.Str("name", d.Name)
	if d.Text != "" {
		f.Str("value", d.Text)
		return
	}
	f.Uint("value", d.Num)
}

// UserRow is one row of bucket authUsers.
type UserRow struct{ dumpdb.User }

// Kind is "user".
func (UserRow) Kind() string { return "user" }

// Line shows name and roles.
func (u UserRow) Line(dst []byte, o Options) []byte {
	return appendDBPlace(textLine(append(dst, "user"...), o, u.content), u.Place)
}

// Fields are those of authpb.User.
func (u UserRow) Fields(f Fields) {
	u.content(f)
	writePlace(f, u.Place)
}

func (u UserRow) content(f Fields) {
	f.Str("name", u.Name)
	f.Strs("roles", u.Roles)
	flag(f, "options", u.HasOptions)
	flag(f, "noPassword", u.NoPassword)
	if len(u.Password) > 0 {
		f.Secret("passwordHash", u.Password)
	}
}

// RoleRow is one row of bucket authRoles.
type RoleRow struct{ dumpdb.Role }

// Kind is "role".
func (RoleRow) Kind() string { return "role" }

// Line shows name and permissions in words.
func (r RoleRow) Line(dst []byte, o Options) []byte {
	return appendDBPlace(textLine(append(dst, "role"...), o, r.content), r.Place)
}

// Fields are name and permissions.
func (r RoleRow) Fields(f Fields) {
	r.content(f)
	writePlace(f, r.Place)
}

func (r RoleRow) content(f Fields) {
	f.Str("name", r.Name)
	perms := make([]string, len(r.Perms))
	for i, p := range r.Perms {
		perms[i] = p.String()
	}
	f.Strs("permissions", perms)
}

// LeaseRow is one row of bucket lease.
type LeaseRow struct{ dumpdb.Lease }

// Kind is "lease".
func (LeaseRow) Kind() string { return "lease" }

// Line shows ID and TTL.
func (l LeaseRow) Line(dst []byte, o Options) []byte {
	return appendDBPlace(textLine(append(dst, "lease"...), o, l.content), l.Place)
}

// Fields are those of leasepb.Lease.
func (l LeaseRow) Fields(f Fields) {
	l.content(f)
	writePlace(f, l.Place)
}

func (l LeaseRow) content(f Fields) {
	f.ID("id", uint64(l.ID))
	f.Int("ttl", l.TTL)
	num(f, "remainingTTL", l.RemainingTTL)
}

// AlarmRow is one row of bucket alarm.
type AlarmRow struct{ dumpdb.Alarm }

// Kind is "alarm".
func (AlarmRow) Kind() string { return "alarm" }

// Line shows member and alarm.
func (a AlarmRow) Line(dst []byte, o Options) []byte {
	return appendDBPlace(textLine(append(dst, "alarm"...), o, a.content), a.Place)
}

// Fields are those of etcdserverpb.AlarmMember.
func (a AlarmRow) Fields(f Fields) {
	a.content(f)
	writePlace(f, a.Place)
}

func (a AlarmRow) content(f Fields) {
	f.ID("member", uint64(a.MemberID))
	f.Str("alarm", nameOf(a.Type, "none", "NOSPACE", "CORRUPT"))
}

// MemberRow is one row of bucket members or, with Removed set, of members_removed.
type MemberRow struct {
	dumpdb.Member
	Removed bool
}

// Kind is "member" or "removed-member".
func (m MemberRow) Kind() string {
	if m.Removed {
		return "removed-member"
	}
	return "member"
}

// Line shows ID, name and URLs.
func (m MemberRow) Line(dst []byte, o Options) []byte {
	dst = textLine(append(dst, m.Kind()...), o, m.content)
	if m.Removed {
		return dst
	}
	return appendDBPlace(dst, m.Place)
}

// Fields are those of the member's JSON.
func (m MemberRow) Fields(f Fields) {
	m.content(f)
	if !m.Removed {
		writePlace(f, m.Place)
	}
}

func (m MemberRow) content(f Fields) {
	f.ID("id", uint64(m.ID))
	if m.Removed {
		return
	}
	word(f, "name", m.Name)
	f.Strs("peerURLs", m.PeerURLs)
	f.Strs("clientURLs", m.ClientURLs)
	flag(f, "learner", m.IsLearner)
}

func appendRev(dst []byte, r dumpdb.Rev) []byte {
	dst = strconv.AppendInt(dst, r.Main, 10)
	return strconv.AppendInt(append(dst, '.'), r.Sub, 10)
}

func appendDBPlace(dst []byte, p dumpdb.Place) []byte {
	dst = strconv.AppendUint(append(dst, "  page "...), p.Page, 10)
	return strconv.AppendInt(append(dst, " @0x"...), p.Offset, 16)
}

func writePlace(f Fields, p dumpdb.Place) {
	f.Uint("page", p.Page)
	f.Int("offset", p.Offset)
}

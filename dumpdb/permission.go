package dumpdb

import (
	"fmt"
	"strconv"
)

// TypeName returns READ, WRITE or READWRITE (authpb.Permission_Type).
func (p Permission) TypeName() string {
	names := [...]string{"READ", "WRITE", "READWRITE"}
	if p.Type < 0 || int(p.Type) >= len(names) {
		return fmt.Sprintf("permission(%d)", p.Type)
	}
	return names[p.Type]
}

// String returns the permission in words: READ key "a", WRITE prefix "a/", READWRITE range ["a", "c"), READ from "a".
func (p Permission) String() string { return p.TypeName() + " " + RangeString(p.Key, p.RangeEnd) }

// RangeString returns a key range in words. As in etcd, an empty end means one key, and an end of one zero byte means
// the end of the key space. An end that is the key with its last byte incremented means a prefix.
func RangeString(key, end []byte) string {
	switch {
	case len(end) == 0:
		return "key " + strconv.Quote(string(key))
	case len(end) == 1 && end[0] == 0 && (len(key) == 0 || len(key) == 1 && key[0] == 0):
		return "all keys"
	case len(end) == 1 && end[0] == 0:
		return "from " + strconv.Quote(string(key))
	case string(PrefixEnd(key)) == string(end):
		return "prefix " + strconv.Quote(string(key))
	}
	return fmt.Sprintf("range [%q, %q)", key, end)
}

// PrefixEnd returns the range end that makes key a prefix, as clientv3.GetPrefixRangeEnd does; one zero byte if the
// prefix has no end.
func PrefixEnd(key []byte) []byte {
	end := append([]byte(nil), key...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{0}
}

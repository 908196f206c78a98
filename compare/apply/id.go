package apply

import (
	"crypto/sha1" //nolint:gosec // the recipe of etcd's IDs, not a protection
	"encoding/binary"
	"slices"
)

// NewMemberID returns the ID of a bootstrapped or restored member: the first 8 bytes of SHA-1 over its sorted peer URLs
// and the cluster token. The name is not included (server/etcdserver/api/membership/member.go, all versions).
func NewMemberID(peerURLs []string, token string) uint64 {
	urls := slices.Sorted(slices.Values(peerURLs))
	h := sha1.New()
	for _, u := range urls {
		_, _ = h.Write([]byte(u)) // a hash never fails to write
	}
	_, _ = h.Write([]byte(token))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// NewClusterID returns the ID of a cluster that starts with these members: the first 8 bytes of SHA-1 over the IDs in
// ascending order (server/etcdserver/api/membership/cluster.go, all versions).
func NewClusterID(members []uint64) uint64 {
	h := sha1.New()
	for _, id := range slices.Sorted(slices.Values(members)) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, id))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

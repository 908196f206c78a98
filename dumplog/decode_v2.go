package dumplog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// isV2Request distinguishes a raw v2 Request from an InternalRaftRequest. Only a v2 Request has a method in field 2 and
// varints in the fields 5, 7 and 9, which gogo always writes. Decoding as one type and falling back to the other is not
// safe: a SYNC parses as an InternalRaftRequest of 3.7.
func isV2Request(b []byte) bool {
	if b[0] != 0x08 { // every v2 request starts with its ID; hardly any InternalRaftRequest does
		return false
	}
	s := scanner{b: b}
	var f field
	method, marks := false, 0
	for s.next(&f) {
		switch f.Num {
		case 2:
			method = f.Type == wire.Bytes && isV2Method(f.B)
		case 5, 7, 9:
			if f.Type != wire.Varint {
				return false
			}
			marks++
		}
	}
	return !s.bad && method && marks == 3
}

func isV2Method(b []byte) bool {
	switch string(b) {
	case "GET", "PUT", "POST", "DELETE", "QGET", "SYNC":
		return true
	}
	return false
}

// v2 reads etcdserverpb.Request, the v2 request of proposers up to 3.5 (api/etcdserverpb/etcdserver.proto).
func (d *Decoder) v2(b []byte) error {
	r := new(V2Request)
	d.req.Kind, d.req.V2 = KindV2, r
	err := d.message("v2", b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &r.ID)
		case 2:
			return str(f, &r.Method)
		case 3:
			return str(f, &r.Path)
		case 4:
			return str(f, &r.Val)
		case 6:
			return str(f, &r.PrevValue)
		case 7:
			return num(f, &r.PrevIndex)
		case 9:
			return num(f, &r.Expiration)
		case 11:
			return num(f, &r.Since)
		case 15:
			return num(f, &r.Time)
		}
		return v2Flag(r, f)
	})
	if err == nil && d.req.Header.ID == 0 {
		d.req.Header.ID = r.ID
	}
	return err
}

func v2Flag(r *V2Request, f *field) bool {
	flags := map[int32]*bool{5: &r.Dir, 10: &r.Wait, 12: &r.Recursive, 13: &r.Sorted, 14: &r.Quorum, 16: &r.Stream}
	switch {
	case f.Num == 8:
		r.PrevExist = new(bool)
		return flag(f, r.PrevExist)
	case f.Num == 17:
		r.Refresh = new(bool)
		return flag(f, r.Refresh)
	case flags[f.Num] != nil:
		return flag(f, flags[f.Num])
	}
	return false
}

// maxJSON bounds the JSON that describes a member: its name and URLs.
const maxJSON = 1 << 20

// MemberAttr returns what a v2 PUT of /0/members/<id>/attributes publishes. A member up to 3.5 sends one after each
// start. ok is false for every other request.
func (r *V2Request) MemberAttr() (a ClusterMemberAttrSet, ok bool) {
	rest, ok := strings.CutPrefix(r.Path, "/0/members/")
	if !ok || r.Method != "PUT" {
		return a, false
	}
	hex, ok := strings.CutSuffix(rest, "/attributes")
	id, err := ParseID(hex)
	if !ok || err != nil {
		return a, false
	}
	var v struct {
		Name       string   `json:"name"`
		ClientURLs []string `json:"clientURLs"`
	}
	if len(r.Val) > maxJSON {
		return a, false
	}
	err = json.Unmarshal([]byte(r.Val), &v)
	return ClusterMemberAttrSet{MemberID: id, Name: v.Name, ClientURLs: v.ClientURLs}, err == nil
}

// ClusterVersion returns the version that a v2 PUT of /0/version sets; ok is false for every other request.
func (r *V2Request) ClusterVersion() (version string, ok bool) {
	return r.Val, r.Method == "PUT" && r.Path == "/0/version"
}

// String returns the name of the type as raft prints it.
func (t ConfChangeType) String() string {
	names := [...]string{"ConfChangeAddNode", "ConfChangeRemoveNode", "ConfChangeUpdateNode",
		"ConfChangeAddLearnerNode"}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("ConfChangeType(%d)", int32(t))
	}
	return names[t]
}

// decodeConfChange reads raftpb.ConfChange {1 id, 2 type, 3 node_id, 4 context}.
func decodeConfChange(b []byte) (ConfChange, error) {
	var c ConfChange
	err := eachField(b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &c.ID)
		case 2:
			return num(f, &c.Type)
		case 3:
			return num(f, &c.NodeID)
		case 4:
			return raw(f, &c.Context)
		}
		return false
	})
	return c, wrap("conf change", err)
}

// readContext decodes the JSON context (membership.ConfigChangeContext). Its id is a JSON number above 2^53, which
// encoding/json reads into a uint64 without loss.
func (c *ConfChange) readContext() {
	if len(c.Context) == 0 || len(c.Context) > maxJSON {
		return
	}
	var m struct {
		ID         uint64   `json:"id"`
		Name       string   `json:"name"`
		PeerURLs   []string `json:"peerURLs"`
		ClientURLs []string `json:"clientURLs"`
		IsLearner  bool     `json:"isLearner"`
		IsPromote  bool     `json:"isPromote"`
	}
	if json.Unmarshal(c.Context, &m) != nil {
		return
	}
	c.Member = &MemberContext{
		ID: ID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner,
		IsPromote: m.IsPromote,
	}
}

// decodeConfChangeV2 reads raftpb.ConfChangeV2 {1 transition, 2 changes {1 type, 2 node_id}*, 3 context}. Empty bytes
// mean the step that leaves a joint configuration.
func decodeConfChangeV2(b []byte) (ConfChangeV2, error) {
	var c ConfChangeV2
	var bad error
	err := eachField(b, func(f *field) bool {
		switch {
		case f.Num == 1:
			return num(f, &c.Transition)
		case f.Num == 3:
			return raw(f, &c.Context)
		case f.Num != 2 || f.Type != wire.Bytes:
			return false
		}
		var s ConfChangeSingle
		err := eachField(f.B, func(f *field) bool {
			switch f.Num {
			case 1:
				return num(f, &s.Type)
			case 2:
				return num(f, &s.NodeID)
			}
			return false
		})
		if bad = cmp.Or(bad, err); len(c.Changes) == MaxParts {
			bad = errParts
			return false
		}
		c.Changes = append(c.Changes, s)
		return true
	})
	return c, wrap("conf change v2", errors.Join(err, bad))
}

package datadir

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// num appends a varint field, even if it is zero, like gogo's non-nullable fields in etcd up to 3.6. All versions read
// that.
func num(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// raw appends a length-delimited field.
func raw(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// confState encodes raftpb.ConfState{1 voters, 2 learners}, IDs unpacked. It omits auto_leave, which 3.3 does not know;
// for other versions absent means false.
func confState(voters, learners []uint64) []byte {
	var b []byte
	for _, id := range voters {
		b = num(b, 1, id)
	}
	for _, id := range learners {
		b = num(b, 2, id)
	}
	return b
}

// ConfChange returns the data of a raftpb.ConfChange entry {1 id, 2 type, 3 node_id, 4 context}. Its id is 0, since no
// server waits for it.
func ConfChange(kind, member uint64, context []byte) []byte {
	b := num(num(num(nil, 1, 0), 2, kind), 3, member)
	if len(context) > 0 {
		b = raw(b, 4, context)
	}
	return b
}

// decodeAlarm reads etcdserverpb.AlarmMember {1 memberID, 2 alarm}.
func decodeAlarm(b []byte) (member, alarm uint64, ok bool) {
	for len(b) > 0 {
		var f wire.Field
		n := f.Next(b)
		if n == 0 || f.Type != wire.Varint {
			return 0, 0, false
		}
		switch f.Num {
		case 1:
			member = f.V
		case 2:
			alarm = f.V
		}
		b = b[n:]
	}
	return member, alarm, true
}

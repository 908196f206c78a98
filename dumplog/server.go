package dumplog

// serverDoes says what etcd does when it starts on a log with this damage. last tells whether the segment is the last.
func serverDoes(d *DamageError, last bool) string {
	switch d.Kind {
	case DamageTornTail:
		return "copies the segment to .broken, cuts it here and starts (3.5.5 and 3.5.6 refuse when the length reaches beyond the file)"
	case DamageZeroHole:
		if last {
			return "takes the zeros for the end or for a torn write: starts without an error and loses everything behind"
		}
		return "goes on with the next segment and refuses to start: crc mismatch"
	case DamageCRC:
		return "refuses to start: crc mismatch"
	case DamageFrame, DamageForeign:
		if last {
			return "cuts the log here when the length reaches beyond the file or a sector is all zeros, else refuses to start"
		}
		return "refuses to start: unexpected EOF or a protobuf error"
	case DamageRecord:
		if last {
			return "refuses to start with a protobuf error, or cuts the log here when a sector of the record is all zeros"
		}
		return "refuses to start with a protobuf error"
	case DamageType:
		return "does not notice, the CRC does not cover the type: reads the record as the wrong type, or refuses a type it does not know"
	case DamagePayload:
		return "panics while it decodes the payload"
	case DamagePadding:
		return "does not look at padding"
	case DamageTruncated:
		return "refuses to start: unexpected EOF; it repairs the last segment only"
	case DamageMissingSegment:
		return "refuses to start: file sequence numbers do not increase continuously, or crc mismatch"
	case DamageMixed:
		return "refuses to start: conflicting metadata found"
	case DamageChain:
		return "refuses to start: crc mismatch"
	case DamageIndexGap:
		return "refuses to start: slice bounds out of range (panics up to 3.3.22 and 3.4.9)"
	case DamageTermOrder:
		return "does not notice when it reads the log"
	case DamageUnreadable:
		return "refuses to start when the file can not be read; takes an empty segment for one that ended"
	}
	return ""
}

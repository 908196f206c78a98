package archive

import "context"

// UnpackWithin is Unpack with other limits; 0 is the limit of Unpack.
func UnpackWithin(ctx context.Context, file, destDir string, bytes, entries int64) error {
	lim := limits{bytes: maxBytes, entries: maxEntries}
	if bytes > 0 {
		lim.bytes = bytes
	}
	if entries > 0 {
		lim.entries = entries
	}
	return unpackWithin(ctx, file, destDir, lim)
}

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

// UnpackInto is Unpack with disk bytes to write at most.
func UnpackInto(ctx context.Context, file, destDir string, disk int64) error {
	return unpackWithin(ctx, file, destDir, limits{bytes: maxBytes, entries: maxEntries, disk: disk})
}

//go:build !lines

package lines

import "embed"

// files is empty: this build holds no further lines.
var files embed.FS

package release

// Rules of the command line: an unknown flag stops a server at once.
var (
	// FlagLogger is --logger.
	FlagLogger = &Rule{
		ID:     "flag-logger",
		What:   "servers know the flag --logger",
		In:     since(Release{4, 0}),
		Source: "server/etcdmain/config.go",
	}
	// FlagLogLevel is --log-level.
	FlagLogLevel = &Rule{
		ID:     "flag-log-level",
		What:   "servers know the flag --log-level",
		In:     since(Release{4, 0}),
		Source: "server/etcdmain/config.go",
	}
	// FlagBcryptCost is --bcrypt-cost.
	FlagBcryptCost = &Rule{
		ID:     "flag-bcrypt-cost",
		What:   "servers know the flag --bcrypt-cost",
		In:     since(Release{4, 0}),
		Source: "server/etcdmain/config.go",
	}
	// FlagGateway is --enable-grpc-gateway.
	FlagGateway = &Rule{
		ID:     "flag-enable-grpc-gateway",
		What:   "servers know the flag --enable-grpc-gateway",
		In:     since(Release{4, 0}),
		Source: "server/etcdmain/config.go",
	}
	// NoFsyncKeepsLog: before, data written since the last cut of a segment stayed in memory with --unsafe-no-fsync.
	NoFsyncKeepsLog = &Rule{
		ID:     "no-fsync-keeps-log",
		What:   "with --unsafe-no-fsync the log is still written to the file, so that it survives the process",
		In:     since(Release{4, 16}),
		Source: "server/wal/wal.go, sync",
	}
	// FlagCatchupExperimental is --experimental-snapshot-catchup-entries.
	FlagCatchupExperimental = &Rule{
		ID:     "flag-experimental-snapshot-catchup-entries",
		What:   "servers know the flag --experimental-snapshot-catchup-entries",
		In:     within(Release{5, 14}, Release{7, 0}),
		Source: "server/etcdmain/config.go",
	}
	// FlagCatchup is --snapshot-catchup-entries.
	FlagCatchup = &Rule{
		ID:     "flag-snapshot-catchup-entries",
		What:   "servers know the flag --snapshot-catchup-entries",
		In:     since(Release{6, 0}),
		Source: "server/embed/config.go @ v3.6.0",
	}
	// SocketPaths: before, an address of a socket had to have the form HOST:PORT too.
	SocketPaths = &Rule{
		ID:     "socket-paths",
		What:   "unixs:///PATH is an address to listen on",
		In:     since(Release{5, 13}),
		Source: "client/pkg/types/urls.go, NewURLs",
	}
)

var flagRules = []*Rule{FlagLogger, FlagLogLevel, FlagBcryptCost, FlagGateway, NoFsyncKeepsLog, FlagCatchupExperimental,
	FlagCatchup, SocketPaths}

package ground

// RunKeeper is the main function of a keeper.
func RunKeeper([]string) int { return 1 }

// EnvKeeper names the variable that marks a keeper.
const EnvKeeper = "SANDBOX_KEEPER"

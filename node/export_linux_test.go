package node

// Become is become, for tests.
var Become = become

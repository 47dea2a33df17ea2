// Package privileges gives up what a daemon that begins as root does not need: it
// makes the process begin anew as another user with a few capabilities
// (capabilities(7)) and without a way to get others. It is for Linux.
package privileges

// Package child has the programs that a bench starts and the directories that they use.
// A program ends with the bench, also if the bench is killed. A directory whose bench was
// killed goes when the next one makes its own.
package child

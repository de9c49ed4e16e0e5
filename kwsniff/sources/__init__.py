"""Where capture bytes come from: files, directories, standard input, interfaces."""

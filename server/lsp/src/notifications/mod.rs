//! Notifications of the client, one a file. What they say is in force when they return: none of them waits.

pub mod did_change;
pub mod did_change_configuration;
pub mod did_change_watched_files;
pub mod did_change_workspace_folders;
pub mod did_close;
pub mod did_open;
pub mod did_rename_files;
pub mod did_save;
pub mod initialized;

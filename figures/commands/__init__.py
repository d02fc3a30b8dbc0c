"""The verbs of the command line, one file a group; nothing heavy is imported until a verb runs.

train      train, compare
pretrain   pretrain
runs       runs, show, verify
imports    import
export     export
analyse    analyse
diagnose   diagnose
explore    explore
pictures   figures list, figures draw, figures gallery, report
about      list, doctor
completion completion
demo       demo
options    options that several verbs share
opening    runs by the texts that name them
"""
